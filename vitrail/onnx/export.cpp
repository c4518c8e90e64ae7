// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/export.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

constexpr const char* kImages = "images";

struct Recording {
  Tensor images;
  std::vector<ops::RecordedOperation> operations;
  std::vector<std::pair<std::string, Tensor>> outputs;
};

Recording record(const models::VisionTransformer& model, const std::array<int64_t, 2>& size) {
  const models::VisionTransformerConfig& config = model.config();
  Recording result;
  result.images = Tensor::empty({kRecordedBatch, config.in_chans, size[0], size[1]}, DType::f32, Device::meta);
  const ops::Recorder recorder;
  Tensor shares;
  const Tensor tokens = model.intermediate(result.images, {.num_tokens = model.num_head_tokens()}, &shares);
  const bool has_logits = config.num_classes > 0 && !config.projection_head;
  if (has_logits) result.outputs.emplace_back("logits", model.forward_head(tokens, shares));
  result.outputs.emplace_back("features", has_logits ? model.pool(tokens, shares) : model.forward_head(tokens, shares));
  result.operations = recorder.operations();
  return result;
}

std::vector<std::pair<std::string, std::string>> metadata_of(const models::ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> entries{{"config.json", models::write_model_config(config)}};
  const std::string processor = models::write_preprocessor_config(config.preprocessing);
  if (!processor.empty()) entries.emplace_back("preprocessor_config.json", processor);
  return entries;
}

}  // namespace

PendingFiles write_image_model(const models::VisionTransformer& model, const models::ModelConfig& config,
                               const std::filesystem::path& path, const OnnxOptions& options) {
  check(options);
  const int64_t batch = options.dynamic_batch ? kBatch : 1, channels = model.config().in_chans;
  const std::array<int64_t, 2> size = config.preprocessing.input_size.value_or(model.config().img_size);
  const Recording recording = record(model, size);
  GraphBuilder graph;
  const bool pixels = options.input == Input::uint8;
  graph.add_input({kImages, pixels ? DType::u8 : DType::f32,
                   pixels ? Ints{batch, size[0], size[1], channels} : Ints{batch, channels, size[0], size[1]}});
  Lowering lowering(
      graph, parameter_names(model),
      {.opset = options.opset, .dynamic_batch = options.dynamic_batch, .activations = options.activations});
  lowering.bind_batch(recording.images,
                      pixels ? normalised_pixels(graph, kImages, config.preprocessing, channels) : kImages);
  for (const ops::RecordedOperation& operation : recording.operations) lowering.lower(operation);
  if (const auto unused = lowering.unused_activations(); !unused.empty())
    throw Error("ONNX", "activations of linear layers of the model", unused.front());
  for (const auto& [name, tensor] : recording.outputs) {
    Ints shape(tensor.shape().begin(), tensor.shape().end());
    shape[0] = batch;
    graph.add_output(lowering.value_of(tensor), {name, DType::f32, shape});
  }
  return write_model(graph, path, metadata_of(config), options);
}

void export_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                 const std::filesystem::path& path, const OnnxOptions& options) {
  commit(write_image_model(model, config, path, options));
}

}  // namespace vitrail::onnx
