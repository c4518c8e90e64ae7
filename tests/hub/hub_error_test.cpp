// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/hub/download_internal.h"

namespace vitrail::hub {
namespace {

std::string error_for(int status, const std::map<std::string, std::string>& headers, const std::string& token = "") {
  Settings settings;
  settings.endpoint = "https://hub";
  settings.token = token;
  return testing::error_of(
      [&] { throw_hub_error({.status = status, .headers = headers}, settings, "org/m", "org/m"); });
}

TEST(HubError, SaysWhatAStatusMeansAndWhatToDo) {
  struct Case {
    int status;
    const char *code, *part;
  };
  for (const auto& [status, code, part] : {Case{401, "GatedRepo", "accept its licence at https://hub/org/m"},
                                           {403, "", "accept its licence at https://hub/org/m"},
                                           {404, "RevisionNotFound", "see https://hub/org/m/commits"},
                                           {404, "EntryNotFound", "expected the file on the hub, got none"},
                                           {404, "RepoNotFound", "or a folder of this machine, got neither"},
                                           {400, "RepoNotFound", "or a folder of this machine, got neither"},
                                           {401, "", "or a folder of this machine, got neither"},
                                           {404, "", "or a folder of this machine, got neither"},
                                           {429, "", "too many requests"},
                                           {403, "DisabledRepo", "expected the status 200 of https://hub, got 403"},
                                           {500, "", "expected the status 200 of https://hub, got 500"}}) {
    const std::string message = error_for(status, {{"x-error-code", code}});
    EXPECT_TRUE(testing::contains(message, part)) << status << code << ": " << message;
    EXPECT_TRUE(message.starts_with("org/m: ")) << message;
  }
}

TEST(HubError, ATokenThatGivesNoAccessIsSaid) {
  EXPECT_TRUE(testing::contains(error_for(404, {}), "set HF_TOKEN to a token of https://hub/settings/tokens"));
  EXPECT_TRUE(testing::contains(error_for(404, {}, "hf_x"), "the token in HF_TOKEN gives no access"));
}

TEST(HubError, HasTheTextOfTheHubUpToALimit) {
  EXPECT_TRUE(error_for(418, {{"x-error-message", "no coffee"}}).ends_with("got 418 (no coffee)"));
  EXPECT_TRUE(
      error_for(418, {{"x-error-message", std::string(300, 'm')}}).ends_with(" (" + std::string(200, 'm') + ")"));
}

// A gated model is told from a missing one whatever the status is.
TEST(HubError, HasTheWholeSentence) {
  const std::string gated =
      "org/m: expected access to the model, got a refusal, because it is gated: accept its licence at "
      "https://hub/org/m, "
      "then ";
  const std::string set = "set HF_TOKEN to a token of https://hub/settings/tokens",
                    useless = "the token in HF_TOKEN gives no access";
  EXPECT_EQ(error_for(404, {{"x-error-code", "GatedRepo"}}), gated + set);
  EXPECT_EQ(error_for(403, {}, "hf_x"), gated + useless);
  const std::string missing =
      "org/m: expected a model on https://hub, or a folder of this machine, got neither; if the model is private or "
      "gated, ";
  EXPECT_EQ(error_for(401, {}), missing + set);
  EXPECT_EQ(error_for(404, {}, "hf_x"), missing + useless);
  EXPECT_EQ(error_for(500, {{"x-error-code", "RepoNotFound"}}, "hf_x"), missing + useless);
  EXPECT_ERROR(error_for(404, {{"x-error-code", "RevisionNotFound"}}), "org/m",
               "one that it does not have: see https://hub/org/m/commits");
  EXPECT_ERROR(error_for(404, {{"x-error-code", "EntryNotFound"}}), "org/m", "none");
  EXPECT_ERROR(error_for(429, {}), "org/m", "\"too many requests\": try again later; with HF_TOKEN more are allowed");
  EXPECT_ERROR(error_for(403, {{"x-error-code", "Other"}, {"x-error-message", "why"}}), "org/m", "403 (why)");
  EXPECT_ERROR(error_for(502, {}), "org/m", "502");
}

}  // namespace
}  // namespace vitrail::hub
