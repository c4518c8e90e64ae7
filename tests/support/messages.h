// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to the library's messages: errors and warnings.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"

namespace vitrail::testing {

// The message of the Error that `action` throws.  If it throws none, the test fails and "" is returned.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// Collects the library's warnings during its lifetime.
class Warnings {
 public:
  Warnings() : before_(set_warning_callback([this](const std::string& message) { messages.push_back(message); })) {}
  ~Warnings() { set_warning_callback(before_); }
  bool any(const std::string& part) const {
    for (const std::string& message : messages) {
      if (contains(message, part)) return true;
    }
    return false;
  }
  std::vector<std::string> messages;

 private:
  WarningCallback before_;
};

}  // namespace vitrail::testing
