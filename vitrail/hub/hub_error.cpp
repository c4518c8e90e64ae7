// SPDX-License-Identifier: Apache-2.0
// Errors of the hub: statuses and the header X-Error-Code.
#include "vitrail/base/error.h"
#include "vitrail/hub/download_internal.h"

namespace vitrail::hub {
namespace {

std::string token_advice(const Settings& settings) {
  return settings.token.empty() ? "set HF_TOKEN to a token of " + settings.endpoint + "/settings/tokens"
                                : "the token in HF_TOKEN gives no access";
}

}  // namespace

void throw_hub_error(const HttpResponse& response, const Settings& settings, const std::string& repository,
                     const std::string& what) {
  const std::string code = response.header("x-error-code"), page = settings.endpoint + "/" + repository;
  if (code == "GatedRepo" || (response.status == 403 && code.empty())) {
    throw Error(what, "access to the model",
                "a refusal, because it is gated: accept its licence at " + page + ", then " + token_advice(settings));
  }
  if (code == "RevisionNotFound") {
    throw Error(what, "a branch, tag or commit of the model", "one that it does not have: see " + page + "/commits");
  }
  if (code == "EntryNotFound") throw Error(what, "the file on the hub", "none");
  if (code == "RepoNotFound" || response.status == 401 || response.status == 404) {
    throw Error(what, "a model on " + settings.endpoint + ", or a folder of this machine",
                "neither; if the model is private or gated, " + token_advice(settings));
  }
  if (response.status == 429) {
    throw Error(what, "a reply of the hub", "\"too many requests\": try again later; with HF_TOKEN more are allowed");
  }
  const std::string text = response.header("x-error-message");
  throw Error(what, "the status 200 of " + settings.endpoint,
              str(response.status, text.empty() ? "" : " (" + text.substr(0, 200) + ")"));
}

}  // namespace vitrail::hub
