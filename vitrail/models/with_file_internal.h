// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::models {

// The result of a function, whose errors get the file in front: a layer does not know where its configuration is from.
template <class Function>
auto with_file(const std::string& file, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(file)) throw;
    if (const Error::Parts* parts = error.parts()) throw Error(file + ": " + parts->where, parts->expected, parts->got);
    throw Error(file + ": " + error.what());
  }
}

}  // namespace vitrail::models
