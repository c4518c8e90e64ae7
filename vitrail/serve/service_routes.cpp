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

namespace {

ordered_json facts_of(const ServedModel& model) {
  if (const sam::Predictor* const segmenter = model.segmenter()) {
    const int64_t side = segmenter->image_size();
    return {{"architecture", "sam"},
            {"image_size", {side, side}},
            {"segments", true},
            {"precision", kernels::name_of(model.precision())}};
  }
  const models::ModelConfig& config = model.images().config();
  return {{"architecture", config.architecture},
          {"image_size", config.vit.img_size},
          {"depth", config.vit.depth},
          {"heads", config.vit.num_heads},
          {"dim", config.vit.embed_dim},
          {"classes", model.classifies() ? config.vit.num_classes : 0},
          {"texts", model.dual() != nullptr},
          {"segments", false},
          {"precision", kernels::name_of(model.precision())}};
}

}  // namespace

void models_route(const CallPointer& call) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, model] : call->engine().models.list()) {
    if (!model) continue;
    list.push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "vitrail"}});
    list.back().update(facts_of(*model));
  }
  call->respond(ordered_json{{"object", "list"}, {"data", list}});
}

}  // namespace vitrail::serve
