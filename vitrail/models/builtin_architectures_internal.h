// SPDX-License-Identifier: Apache-2.0
#pragma once
// The named architectures: the files of architectures/, which architectures.cmake embeds at build time.
#include <span>
#include <string_view>

namespace vitrail::models {

struct BuiltinArchitectures {
  std::string_view file;
  std::string_view json;  // an array of {"name", "credit", "model_args"}, and "timm": false if timm lacks the name
};

std::span<const BuiltinArchitectures> builtin_architectures();

}  // namespace vitrail::models
