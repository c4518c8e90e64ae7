// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps the library's warnings while it exists.
#include <string>
#include <vector>

#include "vitrail/base/callbacks.h"

namespace vitrail::testing {

class WarningsKept {
 public:
  WarningsKept() {
    previous_ = set_warning_callback([this](const std::string& message) { messages_.push_back(message); });
  }
  ~WarningsKept() { set_warning_callback(std::move(previous_)); }
  WarningsKept(const WarningsKept&) = delete;
  WarningsKept& operator=(const WarningsKept&) = delete;

  const std::vector<std::string>& all() const { return messages_; }

 private:
  std::vector<std::string> messages_;
  WarningCallback previous_;
};

}  // namespace vitrail::testing
