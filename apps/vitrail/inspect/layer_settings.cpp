// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/inspect/layer_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"

namespace vitrail::app {
namespace {

template <class T>
T parsed(const std::string& name, const std::string& text, const std::string& kind) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw Error("--set " + name, kind, "\"" + text + "\"");
  return value;
}

}  // namespace

LayerSettings::LayerSettings(const std::vector<std::string>& assignments) {
  for (const std::string& text : assignments) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) throw Error("--set", "NAME=VALUE", "\"" + text + "\"");
    given_[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

const std::string* LayerSettings::find(const std::string& name, const std::string& default_text) {
  const auto found = given_.find(name);
  names_.push_back(name);
  read_.push_back(name + "=" + (found == given_.end() ? default_text : found->second));
  return found == given_.end() ? nullptr : &found->second;
}

int64_t LayerSettings::integer(const std::string& name, int64_t default_value, int64_t min) {
  constexpr int64_t kMax = 1 << 20;  // far above every layer's sizes, and products of three fit 64 bits
  const std::string* text = find(name, std::to_string(default_value));
  if (!text) return default_value;
  const std::string kind = str("an integer from ", min, " to ", kMax);
  const auto value = parsed<int64_t>(name, *text, kind);
  if (value < min || value > kMax) throw Error("--set " + name, kind, *text);
  return value;
}

double LayerSettings::number(const std::string& name, double default_value) {
  const std::string* text = find(name, fmt::format("{}", default_value));
  return text ? parsed<double>(name, *text, "a number of at least 0") : default_value;
}

bool LayerSettings::flag(const std::string& name, bool default_value) {
  const std::string* text = find(name, default_value ? "true" : "false");
  if (!text) return default_value;
  if (*text != "true" && *text != "false") throw Error("--set " + name, "true or false", "\"" + *text + "\"");
  return *text == "true";
}

std::string LayerSettings::text(const std::string& name, const std::string& default_value) {
  const std::string* text = find(name, default_value);
  return text ? *text : default_value;
}

void LayerSettings::check(const std::string& layer) const {
  for (const auto& [name, value] : given_) {
    if (std::ranges::find(names_, name) != names_.end()) continue;
    const std::vector<std::string> near = near_names(name, names_);
    throw Error("--set", "a setting of layer:" + layer + " (" + join(names_) + ")",
                "\"" + name + "\"" + (near.empty() ? "" : "; did you mean " + near.front() + "?"));
  }
}

std::string LayerSettings::summary() const { return join(read_, " "); }

}  // namespace vitrail::app
