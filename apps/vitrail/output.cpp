// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output.h"

#include <fmt/core.h>
#include <unistd.h>

#include "vitrail/base/error.h"

namespace vitrail::app {

Format format_from_name(const std::string& name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  if (name == "csv") return Format::csv;
  throw Error("--format", "text, json or csv", "'" + name + "'");
}

void print_json(const nlohmann::ordered_json& object) {
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void print_error(const std::string& message) { fmt::print(stderr, "vitrail: error: {}\n", message); }
void print_warning(const std::string& message) { fmt::print(stderr, "vitrail: warning: {}\n", message); }

std::string with_path(const std::string& path, const std::string& message) {
  return message.starts_with(path) ? message : path + ": " + message;
}

Progress::Progress(const char* what, size_t total, bool quiet)
    : what_(what), total_(total), enabled_(!quiet && total > 1 && ::isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (enabled_) fmt::print(stderr, "\r\033[K");
}

void Progress::step() {
  ++done_;
  if (!enabled_) return;
  fmt::print(stderr, "\r{} {}/{}", what_, done_, total_);
  std::fflush(stderr);
}

}  // namespace vitrail::app
