// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/token_names.h"

#include <utility>

#include "vitrail/base/error.h"

namespace vitrail::pipeline {
namespace {

using infer::Tokens;

constexpr std::pair<const char*, Tokens> kNames[] = {
    {"pooled", Tokens::pooled}, {"cls", Tokens::cls}, {"patch", Tokens::grid}, {"all", Tokens::all}};

}  // namespace

Tokens tokens_from_name(const std::string& name) {
  for (const auto& [known, tokens] : kNames) {
    if (name == known) return tokens;
  }
  throw Error("tokens", "pooled, cls, patch or all", "'" + name + "'");
}

std::string token_name(Tokens tokens) {
  for (const auto& [name, known] : kNames) {
    if (tokens == known) return name;
  }
  return "patch";
}

}  // namespace vitrail::pipeline
