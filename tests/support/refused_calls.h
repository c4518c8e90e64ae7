// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that have to be refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail::testing {

// Expects that each call throws an Error "name: expected …".
inline void expect_refused(const std::string& name, const std::vector<std::function<void()>>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
      ADD_FAILURE() << name << ": call " << i << " was accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(name + ": expected")) << "call " << i << ": " << error.what();
    }
  }
}

}  // namespace vitrail::testing
