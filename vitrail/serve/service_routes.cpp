// SPDX-License-Identifier: Apache-2.0
// Health, metrics and what is served.
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {

using nlohmann::ordered_json;

void live_route(const CallPointer& call) { call->respond(ordered_json{{"live", true}}); }

void ready_route(const CallPointer& call) {
  if (const std::string fault = call->engine().fault(); !fault.empty()) throw HttpError(503, "not ready: " + fault);
  call->respond(ordered_json{{"ready", true}});
}

void metrics_route(const CallPointer& call) {
  call->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = call->engine().exposition()});
}

void models_route(const CallPointer& call) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, model] : call->engine().models.list()) {
    if (!model) continue;
    list.push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "vitrail"}});
    list.back().update(ordered_json::parse(model->loaded().facts()));
  }
  call->respond(ordered_json{{"object", "list"}, {"data", list}});
}

}  // namespace vitrail::serve
