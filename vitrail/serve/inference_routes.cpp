// SPDX-License-Identifier: Apache-2.0
// The routes of the Open Inference Protocol, /v2/….
#include <algorithm>
#include <cstdio>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/inference_request_internal.h"
#include "vitrail/serve/response_size_internal.h"
#include "vitrail/serve/routes_internal.h"
#include "vitrail/serve/segment_job_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kVersion = "1";  // the version of every model

// The model of /v2/models/NAME[/versions/VERSION]/….
ModelPointer model_of(const Call& call) {
  const std::vector<std::string>& path = call.target().path;
  if (path.size() > 4 && path[3] == "versions" && path[4] != kVersion)
    throw HttpError(404, "version: expected 1, got '" + path[4] + "'");
  return call.engine().models.find(path[2], ModelKind::any);
}

// The outputs of a model: those of a classifier, and the embedding of all.
std::vector<std::string> output_names(const ServedModel& model) {
  if (model.classifies()) return {"logits", "probabilities", "embedding"};
  return {"embedding"};
}

// The shape of an output for one image.
Shape shape_of(const ServedModel& model, const std::string& output) {
  if (model.segmenter()) return model.segmenter()->embedding_shape();
  return {output == "embedding" ? model.embedding_dim() : model.images().config().vit.num_classes};
}

std::vector<InferenceOutput> outputs_of(const ServedModel& model, const InferenceRequest& request) {
  std::vector<InferenceOutput> outputs;
  std::vector<RequestedOutput> wanted = request.outputs;
  if (wanted.empty()) {
    for (const std::string& name : output_names(model)) wanted.push_back({name, request.binary});
  }
  for (const RequestedOutput& output : wanted) {
    const std::vector<std::string> names = output_names(model);
    if (std::ranges::find(names, output.name) == names.end()) {
      throw Error("outputs", "one of " + join(names), "'" + output.name + "'");
    }
    if (output.classification > 0 && output.name == "embedding")
      throw Error("classification", "the output logits or probabilities", "embedding");
    outputs.push_back({.name = output.name,
                       .shape = {},
                       .values = {},
                       .strings = {},
                       .is_text = output.classification > 0,
                       .binary = output.binary});
    if (output.classification > 0)
      outputs.back().shape = {std::min(output.classification, shape_of(model, output.name)[0])};
  }
  return outputs;
}

// "value:index:label" of the largest values, as the extension classification writes them.
std::vector<std::string> classes_of(const Model& model, std::span<const float> values, int64_t count) {
  std::vector<int64_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)]; });
  std::vector<std::string> classes;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = order[static_cast<size_t>(i)];
    char value[32];
    std::snprintf(value, sizeof value, "%f", static_cast<double>(values[static_cast<size_t>(index)]));
    std::string text = str(value, ":", index);
    if (!model.class_names().empty()) text += ":" + model.class_name(index);
    classes.push_back(text);
  }
  return classes;
}

std::vector<float> probabilities_of(const Model& model, std::span<const float> logits, const std::string& where) {
  std::vector<float> probabilities(logits.size());
  for (const Prediction& p : model.predictions(logits, static_cast<int64_t>(logits.size()), where))
    probabilities[static_cast<size_t>(p.index)] = p.probability;
  return probabilities;
}

// The values of an output for one image.
std::vector<float> values_of(const ServedModel& model, const std::string& output, const ImageOutcome& outcome) {
  const Tensor& tensor = output == "embedding" ? outcome.results[0].back() : outcome.results[0].front();
  require_finite(outcome.name + ": " + output, tensor);  // pixels may be finite and yet too large for the model
  const std::span values(tensor.data<float>(), static_cast<size_t>(tensor.numel()));
  if (output == "probabilities") return probabilities_of(model.images(), values, outcome.name);
  return {values.begin(), values.end()};
}

HttpResponse respond_to(const ServedModel& model, const std::optional<std::string>& id,
                        std::vector<InferenceOutput> outputs, const std::vector<ImageOutcome>& outcomes) {
  for (const ImageOutcome& outcome : outcomes) require_result(outcome, 400);
  for (InferenceOutput& output : outputs) {
    for (const ImageOutcome& outcome : outcomes) {
      const std::vector<float> values = values_of(model, output.name, outcome);
      if (!output.is_text) {
        output.values.insert(output.values.end(), values.begin(), values.end());
        continue;
      }
      const std::vector<std::string> classes = classes_of(model.images(), values, output.shape.back());
      output.strings.insert(output.strings.end(), classes.begin(), classes.end());
    }
    const Shape shape = shape_of(model, output.name);
    if (!output.is_text) output.shape.assign(shape.begin(), shape.end());
    output.shape.insert(output.shape.begin(), static_cast<int64_t>(outcomes.size()));
  }
  return inference_response(model.name(), id, outputs);
}

std::vector<EncodedImage> images_of(const ServedModel& model, InferenceInput& input) {
  std::vector<EncodedImage> images;
  if (input.name == "images" && input.datatype == "BYTES") {
    for (std::string& bytes : input.strings) images.push_back({str("image ", images.size()), std::move(bytes)});
    return images;
  }
  if (input.name != "pixels" || input.datatype != "FP32")
    throw Error("inputs", "images of BYTES or pixels of FP32", "'" + input.name + "' of " + input.datatype);
  if (model.segmenter()) throw Error("inputs", "images of BYTES for Segment Anything", "pixels");
  const auto& vit = model.images().config().vit;
  if (input.shape.size() != 4 || input.shape[1] != vit.in_chans || input.shape[2] == 0 || input.shape[3] == 0)
    throw Error("pixels", str("a shape [n, ", vit.in_chans, ", height, width]"),
                str(input.shape.size(), " sizes, or others"));
  const Tensor pixels = input.values.view({input.shape[0], input.shape[1], input.shape[2], input.shape[3]});
  for (int64_t i = 0; i < input.shape[0]; ++i) {
    images.push_back({.name = str("image ", i), .bytes = {}, .input = pixels.select(0, i)});
  }
  return images;
}

// A tensor in the metadata of a model, for any number of images.
ordered_json tensor_json(const std::string& name, const char* datatype, const Shape& shape) {
  std::vector<int64_t> all{-1};
  all.insert(all.end(), shape.begin(), shape.end());
  return {{"name", name}, {"datatype", datatype}, {"shape", all}};
}

}  // namespace

void server_metadata_route(const CallPointer& call) {
  call->respond(
      ordered_json{{"name", "vitrail"},
                   {"version", kVersion},
                   {"extensions", {"binary_tensor_data", "classification", "model_repository", "statistics"}}});
}

void model_metadata_route(const CallPointer& call) {
  const ModelPointer model = model_of(*call);
  ordered_json inputs = ordered_json::array({tensor_json("images", "BYTES", {})}), outputs = ordered_json::array();
  if (!model->segmenter()) {
    const auto& vit = model->images().config().vit;
    inputs.push_back(tensor_json("pixels", "FP32", {vit.in_chans, vit.img_size[0], vit.img_size[1]}));
  }
  for (const std::string& name : output_names(*model))
    outputs.push_back(tensor_json(name, "FP32", shape_of(*model, name)));
  call->respond(ordered_json{{"name", model->name()},
                             {"versions", {kVersion}},
                             {"platform", "vitrail"},
                             {"inputs", inputs},
                             {"outputs", outputs}});
}

// /v2/models/stats for all models, or /v2/models/NAME[/versions/VERSION]/stats
void model_statistics_route(const CallPointer& call) {
  ordered_json list = ordered_json::array();
  if (call->target().path.size() > 3) {
    list.push_back(call->engine().statistics.json(model_of(*call)->name(), kVersion));
  } else {
    for (const auto& [name, model] : call->engine().models.list()) {
      if (model) list.push_back(call->engine().statistics.json(name, kVersion));
    }
  }
  call->respond(ordered_json{{"model_stats", list}});
}

void model_ready_route(const CallPointer& call) {
  const ModelPointer model = model_of(*call);
  if (model->has_changed_files()) throw HttpError(503, changed_files(model->name()));
  call->respond(ordered_json{{"name", model->name()}, {"ready", true}});
}

void infer_route(const CallPointer& call) {
  const ModelPointer model = model_of(*call);
  InferenceRequest request = parse_inference(call->request(), call->engine().options.limits);
  call->options().require_all_taken();
  std::vector<InferenceOutput> outputs = outputs_of(*model, request);
  const auto finish = [=, id = request.id](std::vector<ImageOutcome>& outcomes) {
    return respond_to(*model, id, outputs, outcomes);
  };
  std::vector<EncodedImage> images = images_of(*model, request.input);
  check_response_size(static_cast<int64_t>(images.size()), shape_of(*model, "embedding").numel());
  if (model->segmenter()) return start_segments(call, std::move(images), {.model = model, .finish = finish});
  const infer::Request wanted = model->classifies() ? infer::Request{.output = infer::Output::logits_and_features}
                                                    : model->images().request_of({});
  start_images(call, std::move(images), {.model = model, .requests = {wanted}, .finish = finish});
}

void repository_index_route(const CallPointer& call) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, model] : call->engine().models.list()) {
    const std::string fault = !model ? "unloaded" : model->has_changed_files() ? changed_files(name) : "";
    list.push_back(
        {{"name", name}, {"version", kVersion}, {"state", fault.empty() ? "READY" : "UNAVAILABLE"}, {"reason", fault}});
  }
  call->respond(list);
}

namespace {

// The error of a model's files names paths, which clients must not see.
void load_model(ModelRegistry& models, const std::string& name) {
  try {
    models.load(name);
  } catch (const HttpError&) {
    throw;
  } catch (const Error& error) {
    warn("serve: " + name + ": " + error.what());
    throw HttpError(500, "the model '" + name + "' cannot be loaded: the server's warnings say why");
  }
}

}  // namespace

// /v2/repository/models/NAME/load and …/unload
void repository_change_route(const CallPointer& call) {
  if (!call->engine().options.model_control)
    throw HttpError(403, "loading and unloading is off: start the server with --model-control");
  const std::string& name = call->target().path[3];
  if (call->target().path[4] == "unload") {
    call->engine().models.unload(name);
  } else {
    load_model(call->engine().models, name);
  }
  call->respond(ordered_json::object());
}

}  // namespace vitrail::serve
