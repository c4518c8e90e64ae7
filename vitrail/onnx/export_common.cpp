// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"

namespace vitrail::onnx {
namespace {

// One value per channel, [1, C, 1, 1]: an option of one value is for all channels.
template <class Function>
Tensor per_channel(int64_t channels, Function&& value) {
  std::vector<float> values;
  for (int64_t c = 0; c < channels; ++c) values.push_back(static_cast<float>(value(c)));
  return Tensor::from<float>({1, channels, 1, 1}, values);
}

}  // namespace

void check(const OnnxOptions& options) {
  if (options.opset >= OnnxOptions::kMinOpset && options.opset <= OnnxOptions::kMaxOpset) return;
  throw Error("ONNX", str("an opset from ", OnnxOptions::kMinOpset, " to ", OnnxOptions::kMaxOpset),
              str(options.opset));
}

std::map<const Storage*, std::string> parameter_names(const nn::Module& model) {
  std::map<const Storage*, std::string> names;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    names[parameter.tensor.storage().get()] = parameter.name;
  return names;
}

std::string normalised_pixels(GraphBuilder& graph, const std::string& pixels, const models::Preprocessing& from,
                              int64_t channels) {
  if (!from.mean || !from.std) {
    throw Error("ONNX", "mean and std in the model's configuration, or the options --mean and --std, for uint8 input",
                "none");
  }
  const auto at = [](const std::vector<double>& values, int64_t c) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(c)];
  };
  const Tensor factor = per_channel(channels, [&](int64_t c) { return from.rescale_factor / at(*from.std, c); });
  const Tensor shift = per_channel(channels, [&](int64_t c) { return -at(*from.mean, c) / at(*from.std, c); });
  const std::string planes = graph.transpose(graph.cast(pixels, DType::f32), {0, 3, 1, 2});
  const std::string scaled = graph.node("Mul", {planes, graph.constant(factor, "pixel_factor")});
  return graph.node("Add", {scaled, graph.constant(shift, "pixel_shift")});
}

PendingFiles write_model(const GraphBuilder& graph, const std::filesystem::path& path, const Metadata& metadata,
                         const OnnxOptions& options) {
  return graph.write(path, {.opset = options.opset, .producer_version = VITRAIL_VERSION, .metadata = metadata},
                     options.inline_bytes);
}

void append(PendingFiles& files, PendingFiles more) { std::ranges::move(more, std::back_inserter(files)); }

}  // namespace vitrail::onnx
