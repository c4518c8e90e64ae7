// SPDX-License-Identifier: Apache-2.0
// Health, metrics and what is served.
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/tasks/task.h"

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

namespace {

ordered_json model_json(const ServedModel& model) {
  ordered_json object{{"id", model.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "vitrail"}};
  object.update(ordered_json::parse(model.loaded().facts()));
  object["tasks"] = ordered_json::array();
  for (const std::string& task : tasks::task_names()) {
    if (tasks::find_task(task, model.loaded())) object["tasks"].push_back(task);
  }
  if (!model.note().empty()) object["note"] = model.note();
  return object;
}

}  // namespace

void models_route(const CallPointer& call) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, model] : call->engine().models.list()) {
    if (model) list.push_back(model_json(*model));
  }
  call->respond(ordered_json{{"object", "list"}, {"data", list}});
}

// /v1/models/NAME
void model_route(const CallPointer& call) { call->respond(model_json(*call->find_model(call->target().path[2]))); }

}  // namespace vitrail::serve
