// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/export_network.h"

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

constexpr const char* kImageInput = "images";

Ints shape_of(const Tensor& tensor, int64_t batch) {
  Ints shape(tensor.shape().begin(), tensor.shape().end());
  shape[0] = batch;
  return shape;
}

// Adds the input to the graph; its value is that of the recorded tensor.
std::string add_input(GraphBuilder& graph, const ExportedNetwork& network, const nn::NamedTensor& input, int64_t batch,
                      bool pixels) {
  const Ints shape = shape_of(input.tensor, batch);
  if (!pixels || input.name != kImageInput) {
    graph.add_input({input.name, DType::f32, shape});
    return input.name;
  }
  if (!network.pixels) throw Error("ONNX", "a model whose normalisation is known, for uint8 input", "another");
  graph.add_input({kImageInput, DType::u8, {batch, shape[2], shape[3], shape[1]}});
  return normalised_pixels(graph, kImageInput, *network.pixels, shape[1]);
}

}  // namespace

void export_network_onnx(const ExportedNetwork& network, const std::filesystem::path& path,
                         const OnnxOptions& options) {
  check(options);
  const int64_t batch = options.dynamic_batch ? kBatch : 1;
  std::vector<nn::NamedTensor> inputs = network.inputs;
  for (auto& [name, tensor] : inputs) {
    Shape shape = tensor.shape();
    shape[0] = kRecordedBatch;
    tensor = Tensor::empty(shape, DType::f32, Device::meta);
  }
  const ops::Recorder recorder;
  const std::vector<nn::NamedTensor> outputs = network.forward(inputs);
  GraphBuilder graph;
  Lowering lowering(graph, parameter_names(network.module),
                    {.opset = options.opset, .dynamic_batch = options.dynamic_batch});
  for (const nn::NamedTensor& input : inputs)
    lowering.bind_batch(input.tensor, add_input(graph, network, input, batch, options.input == Input::uint8));
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering.lower(operation);
  for (const nn::NamedTensor& output : outputs)
    graph.add_output(lowering.value_of(output.tensor), {output.name, DType::f32, shape_of(output.tensor, batch)});
  commit(write_model(graph, path, network.metadata, options));
}

}  // namespace vitrail::onnx
