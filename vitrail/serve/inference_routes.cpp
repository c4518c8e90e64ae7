// SPDX-License-Identifier: Apache-2.0
// The routes of the Open Inference Protocol, /v2/….
#include <algorithm>
#include <cstdio>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/image_job_internal.h"
#include "vitrail/serve/inference_request_internal.h"
#include "vitrail/serve/routes_internal.h"

namespace vitrail::serve {
namespace {

using nlohmann::ordered_json;

constexpr const char* kVersion = "1";  // the version of every model

// The model of /v2/models/NAME[/versions/VERSION]/….
ModelPointer model_of(Call& call) {
  const std::vector<std::string>& path = call.target().path;
  if (path.size() > 4 && path[3] == "versions" && path[4] != kVersion)
    throw HttpError(404, "version: expected 1, got '" + path[4] + "'");
  return call.find_model(path[2]);
}

// The outputs of a request: those that it names, or all.
struct WantedOutput {
  size_t index;  // in the outputs of the model
  tasks::Output output;
  int64_t classes = 0;  // the number of classes as texts; 0: the values
  bool binary = false;
};

size_t index_of(const std::vector<tasks::Output>& outputs, const std::string& name) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return i;
  }
  throw Error("outputs", "one of " + join(outputs, ", ", &tasks::Output::name), "'" + name + "'");
}

std::vector<WantedOutput> wanted_outputs(const std::vector<tasks::Output>& outputs, const InferenceRequest& request) {
  std::vector<WantedOutput> wanted;
  for (size_t i = 0; request.outputs.empty() && i < outputs.size(); ++i)
    wanted.push_back({.index = i, .output = outputs[i], .binary = request.binary});
  for (const RequestedOutput& given : request.outputs) {
    const size_t i = index_of(outputs, given.name);
    if (given.classification > 0 && !outputs[i].class_values)
      throw Error("classification", "the output logits or probabilities", given.name);
    wanted.push_back({.index = i,
                      .output = outputs[i],
                      .classes = given.classification == 0 ? 0 : std::min(given.classification, outputs[i].shape[0]),
                      .binary = given.binary});
  }
  return wanted;
}

// "value:index:label" of the largest values, as the extension classification writes them.
std::vector<std::string> classes_of(const std::vector<std::string>& names, std::span<const float> values,
                                    int64_t count) {
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
    if (!names.empty()) text += ":" + names.at(static_cast<size_t>(index));
    classes.push_back(text);
  }
  return classes;
}

InferenceOutput output_of(const tasks::Request& request, const WantedOutput& wanted,
                          const std::vector<std::string>& class_names, const std::vector<ImageOutcome>& outcomes) {
  InferenceOutput result{.name = wanted.output.name,
                         .shape = {static_cast<int64_t>(outcomes.size())},
                         .values = {},
                         .strings = {},
                         .is_text = wanted.classes > 0,
                         .binary = wanted.binary};
  if (result.is_text) result.shape.push_back(wanted.classes);
  if (!result.is_text) result.shape.insert(result.shape.end(), wanted.output.shape.begin(), wanted.output.shape.end());
  for (const ImageOutcome& outcome : outcomes) {
    const Tensor tensor = request.array(outcome.item, wanted.index);
    // Pixels may be finite and yet too large for the model.
    tasks::require_finite(outcome.item.name + ": " + wanted.output.name, tensor);
    const std::span values(tensor.data<float>(), static_cast<size_t>(tensor.numel()));
    if (!result.is_text) {
      result.values.insert(result.values.end(), values.begin(), values.end());
      continue;
    }
    const std::vector<std::string> classes = classes_of(class_names, values, wanted.classes);
    result.strings.insert(result.strings.end(), classes.begin(), classes.end());
  }
  return result;
}

std::vector<EncodedImage> images_of(const ServedModel& model, InferenceInput& input) {
  std::vector<EncodedImage> images;
  if (input.name == "images" && input.datatype == "BYTES") {
    for (std::string& bytes : input.strings) images.push_back({str("image ", images.size()), std::move(bytes)});
    return images;
  }
  if (input.name != "pixels" || input.datatype != "FP32")
    throw Error("inputs", "images of BYTES or pixels of FP32", "'" + input.name + "' of " + input.datatype);
  const Shape shape = model.loaded().input_shape();
  if (shape.rank() == 0) throw Error("inputs", "images of BYTES for " + model.loaded().family(), "pixels");
  if (input.shape.size() != 4 || input.shape[1] != shape[0] || input.shape[2] == 0 || input.shape[3] == 0)
    throw Error("pixels", str("a shape [n, ", shape[0], ", height, width]"),
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
  call->respond(ordered_json{
      {"name", "vitrail"},
      {"version", kVersion},
      {"extensions",
       {"binary_tensor_data", "classification", "model_configuration", "model_repository", "statistics"}}});
}

void model_metadata_route(const CallPointer& call) {
  const ModelPointer model = model_of(*call);
  ordered_json inputs = ordered_json::array({tensor_json("images", "BYTES", {})}), outputs = ordered_json::array();
  const Shape pixels = model->loaded().input_shape();
  if (pixels.rank() > 0) inputs.push_back(tensor_json("pixels", "FP32", pixels));
  for (const tasks::Output& output : model->loaded().tensors()->outputs())
    outputs.push_back(tensor_json(output.name, "FP32", output.shape));
  call->respond(ordered_json{{"name", model->name()},
                             {"versions", {kVersion}},
                             {"platform", "vitrail"},
                             {"inputs", inputs},
                             {"outputs", outputs}});
}

// Triton's extension model_configuration.
void model_config_route(const CallPointer& call) {
  const ModelPointer model = model_of(*call);
  const auto tensor = [](const std::string& name, const char* type, const Shape& shape) {
    const std::vector<int64_t> dims(shape.begin(), shape.end());
    return ordered_json{{"name", name}, {"data_type", type}, {"dims", dims}};
  };
  ordered_json inputs = ordered_json::array({tensor("images", "TYPE_STRING", {})}), outputs = ordered_json::array();
  const Shape pixels = model->loaded().input_shape();
  if (pixels.rank() > 0) inputs.push_back(tensor("pixels", "TYPE_FP32", pixels));
  for (const tasks::Output& output : model->loaded().tensors()->outputs())
    outputs.push_back(tensor(output.name, "TYPE_FP32", output.shape));
  call->respond(ordered_json{{"name", model->name()},
                             {"platform", "vitrail"},
                             {"backend", "vitrail"},
                             {"max_batch_size", call->engine().options.limits.images},
                             {"input", inputs},
                             {"output", outputs}});
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
  InferenceRequest request = parse_inference(call->request(), call->engine().options.limits, call->parse_budget());
  call->options().require_all_taken();
  const std::shared_ptr<tasks::Request> tensors = model->loaded().tensors();
  const std::vector<tasks::Output> all = tensors->outputs();
  const std::vector<WantedOutput> wanted = wanted_outputs(all, request);
  std::vector<EncodedImage> images = images_of(*model, request.input);
  tasks::check_result_size(std::ssize(images), all.back().shape.numel());
  const auto finish = [=, id = request.id](std::vector<ImageOutcome>& outcomes) {
    for (const ImageOutcome& outcome : outcomes) require_result(outcome, 400);
    std::vector<InferenceOutput> outputs;
    for (const WantedOutput& output : wanted)
      outputs.push_back(output_of(*tensors, output, model->loaded().class_names(), outcomes));
    return inference_response(model->name(), id, outputs);
  };
  start_images(call, std::move(images), {.model = model, .request = tensors, .finish = finish});
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
