// SPDX-License-Identifier: Apache-2.0
#include "vitrail/onnx/export_text.h"

#include <limits>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/onnx/export_internal.h"
#include "vitrail/onnx/lowering_internal.h"

namespace vitrail::onnx {
namespace {

constexpr const char* kIds = "input_ids";

// The first position of the largest value in each row of x [N, n], i64 [N].
std::string first_largest(GraphBuilder& graph, const std::string& x) {
  return graph.node("ArgMax", {graph.cast(x, DType::f32)}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
}

// TextTransformer::pooled_rows(): the index of each text's pooled token among all N · n tokens.
std::string pooled_rows(GraphBuilder& graph, const models::TextTransformerConfig& config, bool dynamic_batch) {
  const int64_t length = config.context_length + (config.class_token ? 1 : 0);
  std::string position = graph.constant(Ints{length - 1});
  if (config.pool == models::TextPool::largest_id) position = first_largest(graph, kIds);
  if (config.pool == models::TextPool::first_eos)
    position = first_largest(graph, graph.node("Equal", {kIds, graph.index(config.eos_token_id)}));
  if (!dynamic_batch) return position;
  const std::string count = graph.node("Squeeze", {graph.extent(kIds, 0)});
  const std::string texts = graph.node("Range", {graph.index(0), count, graph.index(1)});
  return graph.node("Add", {graph.node("Mul", {texts, graph.index(length)}), position});
}

// TextTransformer::padding_mask() of a causal tower: [N, 1, T, T].
std::string padding_mask(GraphBuilder& graph, const models::TextTransformerConfig& config) {
  const int64_t total = config.context_length + 1;
  const double hidden = -std::numeric_limits<double>::infinity();
  const std::string is_pad = graph.node("Equal", {kIds, graph.index(config.pad_token_id)});
  const std::string tokens = graph.node("Where", {is_pad, graph.scalar(hidden), graph.scalar(0)});
  const std::string keys = graph.node("Pad", {tokens, graph.constant(Ints{0, 1, 0, 0})});  // the first token is seen
  const std::string rows = graph.node("Unsqueeze", {keys, graph.constant(Ints{1, 2})});
  return graph.node("Add", {rows, graph.constant(models::causal_mask(total), "causal_mask")});
}

std::string number(double value) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  out << value;
  return out.str();
}

}  // namespace

std::filesystem::path text_onnx_file(const std::filesystem::path& path) {
  std::filesystem::path file = path;
  return file.replace_extension(".text.onnx");
}

PendingFiles write_text_tower(const models::TextTower& tower, const std::filesystem::path& path,
                              const OnnxOptions& options) {
  check(options);
  const models::TextTransformerConfig& config = tower.model.config();
  const int64_t batch = options.dynamic_batch ? kBatch : 1;
  GraphBuilder graph;
  graph.add_input({kIds, DType::i64, {batch, config.context_length}});
  const Tensor ids = Tensor::empty({kRecordedBatch, config.context_length}, DType::i64, Device::meta);
  const Tensor rows = Tensor::empty({kRecordedBatch}, DType::i64, Device::meta);
  const int64_t total = config.context_length + 1;
  Tensor mask;
  if (config.class_token) {
    if (!config.causal) throw Error("no_causal_mask", "a causal mask with embed_cls for ONNX", "none");
    mask = Tensor::empty({kRecordedBatch, 1, total, total}, DType::f32, Device::meta);
  }
  const ops::Recorder recorder;
  const Tensor embeddings = tower.model.forward(ids, rows, mask);
  Lowering lowering(graph, parameter_names(tower.model),
                    {.opset = options.opset, .dynamic_batch = options.dynamic_batch});
  lowering.bind_batch(ids, kIds);
  lowering.bind(rows, pooled_rows(graph, config, options.dynamic_batch));
  if (config.class_token) lowering.bind(mask, padding_mask(graph, config));
  for (const ops::RecordedOperation& operation : recorder.operations()) lowering.lower(operation);
  graph.add_output(lowering.value_of(embeddings), {"text_embeds", DType::f32, {batch, config.output_dim}});
  return write_model(graph, text_onnx_file(path),
                     {{"logit_scale", number(tower.logit_scale)}, {"logit_bias", number(tower.logit_bias)}}, options);
}

void export_text_onnx(const models::TextTower& tower, const std::filesystem::path& path, const OnnxOptions& options) {
  commit(write_text_tower(tower, path, options));
}

void export_dual_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                      const models::TextTower& tower, const std::filesystem::path& path, const OnnxOptions& options) {
  PendingFiles files = write_image_model(model, config, path, options);
  append(files, write_text_tower(tower, path, options));
  commit(files);
}

}  // namespace vitrail::onnx
