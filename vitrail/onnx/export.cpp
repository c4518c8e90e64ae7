// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/export.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/lowering_internal.h"
#include "vitrail/onnx/view_internal.h"
#include "vitrail/ops/recorder.h"

namespace vitrail::onnx {
namespace {

constexpr const char* kImages = "images";

std::map<const Storage*, std::string> names_of(const models::VisionTransformer& model) {
  std::map<const Storage*, std::string> names;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    names[parameter.tensor.storage().get()] = parameter.name;
  return names;
}

// One value per channel, [1, C, 1, 1]: an option of one value is for all channels.
template <class Function>
Tensor per_channel(int64_t channels, Function&& value) {
  std::vector<float> values;
  for (int64_t c = 0; c < channels; ++c) values.push_back(static_cast<float>(value(c)));
  return Tensor::from<float>({1, channels, 1, 1}, values);
}

// pixels [N, H, W, C] → (pixel · rescale − mean) / std [N, C, H, W]
std::string normalised(GraphBuilder& graph, const models::Preprocessing& from, int64_t channels) {
  if (!from.mean || !from.std) {
    throw Error("ONNX", "mean and std in the model's configuration, or the options --mean and --std, for uint8 input",
                "none");
  }
  const auto at = [](const std::vector<double>& values, int64_t c) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(c)];
  };
  enum : int64_t { kFloat = 1 };
  const std::string pixels = graph.transpose(graph.node("Cast", {kImages}, {{"to", int64_t{kFloat}}}), {0, 3, 1, 2});
  const Tensor factor = per_channel(channels, [&](int64_t c) { return from.rescale_factor / at(*from.std, c); });
  const Tensor shift = per_channel(channels, [&](int64_t c) { return -at(*from.mean, c) / at(*from.std, c); });
  const std::string scaled = graph.node("Mul", {pixels, graph.constant(factor, "pixel_factor")});
  return graph.node("Add", {scaled, graph.constant(shift, "pixel_shift")});
}

struct Recording {
  Tensor images;
  std::vector<ops::Operation> operations;
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

void check(const OnnxOptions& options) {
  if (options.opset >= OnnxOptions::kMinOpset && options.opset <= OnnxOptions::kMaxOpset) return;
  throw Error("ONNX", str("an opset from ", OnnxOptions::kMinOpset, " to ", OnnxOptions::kMaxOpset),
              str(options.opset));
}

std::vector<std::pair<std::string, std::string>> metadata_of(const models::ModelConfig& config) {
  std::vector<std::pair<std::string, std::string>> entries{{"config.json", models::write_model_config(config)}};
  const std::string processor = models::write_preprocessor_config(config.preprocessing);
  if (!processor.empty()) entries.emplace_back("preprocessor_config.json", processor);
  return entries;
}

}  // namespace

void export_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                 const std::filesystem::path& path, const OnnxOptions& options) {
  check(options);
  const int64_t batch = options.dynamic_batch ? -1 : 1, channels = model.config().in_chans;
  const std::array<int64_t, 2> size = config.preprocessing.input_size.value_or(model.config().img_size);
  const Recording recording = record(model, size);
  GraphBuilder graph;
  const bool pixels = options.input == Input::uint8;
  graph.add_input({kImages, pixels ? DType::u8 : DType::f32,
                   pixels ? Ints{batch, size[0], size[1], channels} : Ints{batch, channels, size[0], size[1]}});
  Lowering lowering(graph, names_of(model), {.opset = options.opset, .dynamic_batch = options.dynamic_batch});
  lowering.bind(recording.images, pixels ? normalised(graph, config.preprocessing, channels) : kImages);
  for (const ops::Operation& operation : recording.operations) lowering.lower(operation);
  for (const auto& [name, tensor] : recording.outputs) {
    Ints shape(tensor.shape().begin(), tensor.shape().end());
    shape[0] = batch;
    graph.add_output(lowering.value_of(tensor), {name, DType::f32, shape});
  }
  graph.write(path, {.opset = options.opset, .producer_version = VITRAIL_VERSION, .metadata = metadata_of(config)},
              options.inline_bytes);
}

}  // namespace vitrail::onnx
