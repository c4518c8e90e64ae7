// SPDX-License-Identifier: Apache-2.0
#pragma once
// What must hold of the claims of a learning page.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace vitrail::testing {

// A claim's condition in f32, and values for which it does not hold.
struct ClaimAssertion {
  bool (*holds)(const nlohmann::ordered_json& values);
  nlohmann::ordered_json wrong;  // replaces members of the values
};
using ClaimAssertions = std::map<std::string, ClaimAssertion>;  // by the ids of claims

// rows: manifest["claims"].  Expects an assertion of each claim, that it holds, and that it does not for wrong values.
// The ids.
std::set<std::string> expect_claims(const ClaimAssertions& assertions, const nlohmann::ordered_json& rows);

}  // namespace vitrail::testing
