// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/block_arrays_internal.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/explain/attention_values_internal.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::explain {
namespace {

constexpr size_t kMegabyte = 1'000'000;

// What a block's values are derived from, as they are or as the page reads them.
struct BlockValues {
  Tensor input, q, k, v, bias, residual1, output;
};

struct Derived {
  const char* name;
  Tensor value;
  bool of_queries = false;  // a row for each query
};

Tensor difference(const Tensor& a, const Tensor& b) {
  return ops::add(a.contiguous(), ops::mul(b.contiguous(), Tensor::full({1}, -1.0)));
}

Tensor normalized(const nn::Module& model, const std::string& norm, const Tensor& x, double eps) {
  return ops::layer_norm(x.contiguous(), model.parameter(norm + ".weight"), model.parameter(norm + ".bias"), eps);
}

// The values that docs/design/explain.md lists, from those of one block.
std::vector<Derived> derive(const models::VisionTransformer& model, int64_t block, const BlockValues& values) {
  const models::VisionTransformerConfig& config = model.config();
  std::vector<Derived> derived;
  derived.push_back({"attn.scores", attention_scores(values.q, values.k, values.bias, attention_scale(config)), true});
  derived.push_back({"attn.weights", ops::softmax(derived.back().value), true});
  const Tensor context = ops::matmul(derived.back().value, values.v.contiguous());
  derived.push_back({"attn.context", context});
  derived.push_back({"attn.merged", context.transpose(1, 2).flatten(2)});
  if (config.norm_first && !config.use_post_norm && config.norm_layer == nn::NormLayer::layer_norm) {
    derived.push_back({"norm1", normalized(model, in_block(block, "norm1"), values.input, config.norm_eps)});
    derived.push_back({"norm2", normalized(model, in_block(block, "norm2"), values.residual1, config.norm_eps)});
  }
  derived.push_back({"drop_path1", difference(values.residual1, values.input)});
  if (config.norm_first || config.use_post_norm)
    derived.push_back({"drop_path2", difference(values.output, values.residual1)});
  return derived;
}

// The class token and the tokens that all heads of a block attend to most, `count` in all, in ascending order.
std::vector<int64_t> top_attended(const Tensor& weights, int64_t count) {
  const Tensor all = weights.contiguous();
  const int64_t tokens = all.size(-1);
  if (count == 0 || count >= tokens) return {};
  std::vector<double> received(static_cast<size_t>(tokens));
  for (int64_t head = 0; head < all.size(1); ++head)  // the row of the class token
    for (int64_t i = 0; i < tokens; ++i)
      received[static_cast<size_t>(i)] += static_cast<double>(all.data<float>()[head * tokens * tokens + i]);
  received[0] = std::numeric_limits<double>::infinity();
  std::vector<int64_t> order(static_cast<size_t>(tokens));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return received[static_cast<size_t>(a)] > received[static_cast<size_t>(b)]; });
  order.resize(static_cast<size_t>(count));
  std::ranges::sort(order);
  return order;
}

class ForwardArrays {
 public:
  ForwardArrays(const models::VisionTransformer& model, const Forward& forward, const Storage& storage, Arrays& arrays)
      : model_(model), forward_(forward), storage_(storage), arrays_(arrays) {}

  void add_outside_blocks(const std::vector<ChannelScale>& pixels);
  void add_block(int64_t block);
  nlohmann::ordered_json derived() { return std::move(derived_); }

 private:
  void add_errors(int64_t block, const BlockValues& stored, const std::vector<Derived>& expected, bool has_stream);
  void parameter(const std::string& name, Encoding encoding);  // if the model has it
  Tensor value(const std::string& name, Encoding encoding, const std::vector<int64_t>& rows = {});

  const models::VisionTransformer& model_;
  const Forward& forward_;
  const Storage& storage_;
  Arrays& arrays_;
  nlohmann::ordered_json derived_ = nlohmann::ordered_json::object();
  Tensor stream_;  // the input of the next block, as the page reads it
};

void ForwardArrays::parameter(const std::string& name, Encoding encoding) {
  for (const nn::NamedTensor& parameter : model_.named_parameters())
    if (parameter.name == name) arrays_.add(name, parameter.tensor, encoding);
}

Tensor ForwardArrays::value(const std::string& name, Encoding encoding, const std::vector<int64_t>& rows) {
  return arrays_.add(name, forward_.at(name), encoding, rows);
}

void ForwardArrays::add_outside_blocks(const std::vector<ChannelScale>& pixels) {
  if (!arrays_.add_bytes("images", forward_.at("images"), pixels)) value("images", Encoding::f16);
  for (const char* name : {"patch_embed.proj.weight", "pos_embed"}) parameter(name, storage_.outside);
  for (const char* name : {"patch_embed.proj.bias", "norm.weight", "norm.bias", "cls_token"})
    parameter(name, Encoding::f32);
  value("patch_embed", storage_.outside);
  stream_ = value("embedded", storage_.outside);
  if (model_.config().pre_norm) stream_ = value("norm_pre", storage_.outside);
  value("norm", storage_.outside);
  if (forward_.has("pooled")) value("pooled", Encoding::f32);
  if (forward_.has("logits")) value("logits", Encoding::f32);
}

void ForwardArrays::add_block(int64_t block) {
  arrays_.begin_blob();
  const auto name = [&](const char* part) { return in_block(block, part); };
  BlockValues exact{.input = forward_.at(input_of(block)),
                    .q = forward_.at(name("attn.q")),
                    .k = forward_.at(name("attn.k")),
                    .v = forward_.at(name("attn.v")),
                    .bias = {},
                    .residual1 = forward_.at(name("residual1")),
                    .output = forward_.at(str("blocks.", block))};
  if (forward_.has(name("attn.bias"))) exact.bias = forward_.at(name("attn.bias"));
  std::vector<Derived> expected = derive(model_, block, exact);
  const std::vector<int64_t> rows = top_attended(expected[1].value, storage_.stream_tokens);
  const std::vector<int64_t> queries = storage_.few_queries ? rows : std::vector<int64_t>();
  const std::vector<int64_t> mlp_rows = top_attended(expected[1].value, storage_.mlp_tokens);
  for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"})
    parameter(name(norm), Encoding::f32);
  BlockValues stored = exact;
  const bool has_attention = (model_.config().depth - 1 - block) % storage_.attention_step == 0;
  if (has_attention) {
    stored.q = chosen_rows(value(name("attn.q"), storage_.attention, queries), queries);
    stored.k = value(name("attn.k"), storage_.attention);
    stored.v = value(name("attn.v"), storage_.attention, rows);
    if (exact.bias.defined()) stored.bias = chosen_rows(value(name("attn.bias"), storage_.attention, queries), queries);
  }
  stored.input = stream_;
  stored.residual1 = value(name("residual1"), storage_.stream, rows);
  stored.output = value(str("blocks.", block), storage_.stream, rows);
  if (forward_.has(name("mlp.act"))) value(name("mlp.act"), storage_.mlp, mlp_rows);
  stream_ = stored.output;
  for (Derived& value : expected) value.value = value.of_queries ? chosen_rows(value.value, queries) : value.value;
  if (has_attention) add_errors(block, stored, expected, rows.empty());
}

// Without all rows of the stream, the page derives only scores and weights.
void ForwardArrays::add_errors(int64_t block, const BlockValues& stored, const std::vector<Derived>& expected,
                               bool has_stream) {
  const std::vector<Derived> found = derive(model_, block, stored);
  for (size_t i = 0; i < (has_stream ? found.size() : 2); ++i)
    derived_[in_block(block, found[i].name)] = {
        {"max_error", finite_or_text(max_difference(found[i].value, expected[i].value))}};
}

}  // namespace

std::vector<Storage> storages(Detail detail) {
  const Storage exact{.mlp = Encoding::f16}, half{.mlp_tokens = 17};
  const Storage bytes{.stream = Encoding::i8, .attention = Encoding::i8, .mlp_tokens = 17};
  const Storage part{.stream = Encoding::i8, .attention = Encoding::i8, .stream_tokens = 65, .mlp_tokens = 17};
  const Storage few{
      .outside = Encoding::i8, .stream = Encoding::i8, .attention = Encoding::i8, .stream_tokens = 17, .mlp_tokens = 9};
  if (detail == Detail::full) return {exact};
  std::vector<Storage> rows{bytes, part, few};
  if (detail == Detail::standard) rows.insert(rows.begin(), half);
  for (const int64_t step : {1, 2, 4, 12}) {  // large models and images
    rows.push_back(few);
    rows.back().few_queries = true;
    rows.back().attention_step = step;
  }
  return rows;
}

size_t max_bytes(Detail detail) {
  if (detail == Detail::full) return std::numeric_limits<size_t>::max();
  return (detail == Detail::standard ? 8 : 2) * kMegabyte;
}

std::vector<LeftOut> left_out(const Storage& storage, int64_t tokens, int64_t blocks) {
  std::vector<LeftOut> rows;
  const auto add = [&](const std::string& what, int64_t count) {
    if (count > 0 && count < tokens) rows.push_back({what, str(count, " of ", tokens, " tokens")});
  };
  if (storage.attention_step > 1)
    rows.push_back(
        {"blocks.*.attn.q, .k and .v", str((blocks - 1) / storage.attention_step + 1, " of ", blocks, " blocks")});
  if (storage.few_queries) add("blocks.*.attn.q", storage.stream_tokens);
  add("blocks.*.attn.v, blocks.*.residual1, blocks.*", storage.stream_tokens);
  add("blocks.*.mlp.act", storage.mlp_tokens);
  return rows;
}

void add_head_statistics(const Forward& forward, Arrays& arrays) {
  using analysis::HeadStatistics;
  const auto blocks = std::ssize(forward.heads), heads = std::ssize(forward.heads.front());
  const auto add = [&](const char* name, double HeadStatistics::*field) {
    std::vector<float> values;
    for (const std::vector<HeadStatistics>& block : forward.heads)
      for (const HeadStatistics& head : block) values.push_back(static_cast<float>(head.*field));
    arrays.add(str("explain.heads.", name), Tensor::from({blocks, heads}, values), Encoding::f32);
  };
  add("entropy", &HeadStatistics::entropy);
  add("distance", &HeadStatistics::distance);
  add("special", &HeadStatistics::special);
}

nlohmann::ordered_json add_forward(const models::VisionTransformer& model, const Forward& forward,
                                   const Storage& storage, const std::vector<ChannelScale>& pixels, Arrays& arrays) {
  ForwardArrays writer(model, forward, storage, arrays);
  writer.add_outside_blocks(pixels);
  for (int64_t block = 0; block < model.config().depth; ++block) writer.add_block(block);
  return writer.derived();
}

}  // namespace vitrail::explain
