// SPDX-License-Identifier: Apache-2.0
#include "tests/support/claim_assertions.h"

#include <gtest/gtest.h>

namespace vitrail::testing {

std::set<std::string> expect_claims(const ClaimAssertions& assertions, const nlohmann::ordered_json& rows) {
  std::set<std::string> seen;
  for (const nlohmann::ordered_json& row : rows) {
    const std::string id = row["id"];
    seen.insert(id);
    const auto found = assertions.find(id);
    if (found == assertions.end()) {
      ADD_FAILURE() << id << " has no assertion";
      continue;
    }
    EXPECT_TRUE(found->second.holds(row["values"])) << row.dump();
    nlohmann::ordered_json wrong = row["values"];
    wrong.update(found->second.wrong);
    EXPECT_FALSE(found->second.holds(wrong)) << wrong.dump();
  }
  return seen;
}

}  // namespace vitrail::testing
