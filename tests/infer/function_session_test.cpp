// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/function_session.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/attention/attention.h"
#include "vitrail/nn/downsampled_attention.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/ops/attention.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/embedding.h"
#include "vitrail/ops/recorder.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::infer {
namespace {

using kernels::Precision;
using testing::relative_error;

constexpr int64_t kAttentionDim = 64, kHeads = 4;

nn::MultiheadAttention cross_attention() {
  RandomParams random(3);
  return nn::MultiheadAttention({.embed_dim = kAttentionDim, .num_heads = kHeads}, ParamSource(random));
}

// Queries attend to another token set; the weights, averaged over heads, are a second output.
Function attend_to_context(const nn::MultiheadAttention& layer) {
  return [&layer](const NamedTensors& inputs) -> NamedTensors {
    const Tensor context = find_tensor(inputs, "context");
    const auto result = layer.forward(find_tensor(inputs, "queries"), context, context);
    return {{"out", result.out}, {"weights", result.weights}};
  };
}

NamedTensors inputs_of(int64_t batch, int64_t queries, int64_t keys) {
  return {{"queries", Tensor::randn({batch, queries, kAttentionDim}, 1)},
          {"context", Tensor::randn({batch, keys, kAttentionDim}, 2)}};
}

class CrossAttention : public ::testing::TestWithParam<Precision> {};

// Two linear layers follow each other.  Each rounds its weight and its input: to 2^-9 of an element in bf16, to 1/254
// of a row's range in int8.
TEST_P(CrossAttention, EqualsTheEagerFunction) {
  const bool fp32 = GetParam() == Precision::fp32, int8 = GetParam() == Precision::int8;
  const double tolerance = fp32 ? 1e-6 : int8 ? 4 * 4.0 / 254 : 4.0 / 512;
  const nn::MultiheadAttention reference = cross_attention();
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer), {.precision = GetParam()});
  for (const auto& [queries, keys] : {std::pair{7, 33}, std::pair{1, 5}, std::pair{40, 3}}) {
    const NamedTensors inputs = inputs_of(2, queries, keys);
    const NamedTensors got = session.run(inputs), want = attend_to_context(reference)(inputs);
    ASSERT_EQ(got.size(), 2U);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].name, want[i].name);
      ASSERT_EQ(got[i].tensor.shape(), want[i].tensor.shape());
      EXPECT_LE(relative_error(got[i].tensor, want[i].tensor), tolerance) << got[i].name << " " << queries;
    }
  }
}

// Such attention reads the weights of its projections for few tokens, and packs them for many.  Every order of both,
// with weights that packing releases and with retained ones.
TEST(FunctionSession, AttentionOfFewTokensFollowsThatOfManyAndPrecedesIt) {
  const auto make = [] {
    RandomParams random(3);
    return nn::DownsampledAttention({.embedding_dim = kAttentionDim, .num_heads = kHeads, .downsample_rate = 2},
                                    ParamSource(random));
  };
  const nn::DownsampledAttention reference = make();
  const std::pair<int64_t, int64_t> many{80, 90}, few_queries{2, 90}, few_keys{80, 2};
  for (const bool retain : {false, true}) {
    for (const auto& order : {std::array{many, few_queries, few_keys}, {few_queries, many, few_keys}}) {
      nn::DownsampledAttention layer = make();
      FunctionOptions options;
      if (retain) options.retained_layers = {"q_proj", "k_proj", "v_proj", "out_proj"};
      const FunctionSession session(
          layer,
          [&layer](const NamedTensors& in) -> NamedTensors {
            return {{"out", layer.forward(in[0].tensor, in[1].tensor, in[1].tensor)}};
          },
          options);
      for (int round = 0; round < 2; ++round) {  // the second one runs the compiled programs of the first
        for (const auto& [queries, keys] : order) {
          const NamedTensors inputs = inputs_of(2, queries, keys);
          const Tensor want = reference.forward(inputs[0].tensor, inputs[1].tensor, inputs[1].tensor);
          EXPECT_LE(relative_error(session.run(inputs)[0].tensor, want), 1e-5) << queries << " " << keys;
        }
      }
    }
  }
}

// Threads that share a batch compute what one thread computes for each sample.
TEST_P(CrossAttention, ASplitBatchGivesEachSampleItsOwnResult) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer),
                                {.threads = 2, .precision = GetParam(), .split_batch = true});
  const NamedTensors inputs = inputs_of(5, 6, 9);
  const NamedTensors together = session.run(inputs);
  for (int64_t b = 0; b < 5; ++b) {
    NamedTensors sample = inputs;
    for (nn::NamedTensor& input : sample) input.tensor = input.tensor.narrow(0, b, 1);
    const NamedTensors alone = session.run(sample);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(testing::close(together[i].tensor.narrow(0, b, 1), alone[i].tensor, 1e-6, 1e-6)) << b;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, CrossAttention,
                         ::testing::Values(Precision::fp32, Precision::half, Precision::int8),
                         [](const auto& info) { return std::string(kernels::name_of(info.param)); });

TEST(FunctionSession, RunIntoWritesTheSameResults) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer));
  const NamedTensors inputs = inputs_of(1, 4, 8), want = session.run(inputs);
  const std::vector<Tensor> results{Tensor::zeros(want[0].tensor.shape()), Tensor::zeros(want[1].tensor.shape())};
  session.run_into(inputs, results);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(testing::close(results[i], want[i].tensor, 0));
  EXPECT_THROW(session.run_into(inputs, {results[0]}), Error);
}

TEST(FunctionSession, RecordsOncePerInputShapes) {
  nn::MultiheadAttention layer = cross_attention();
  int recorded = 0;
  const FunctionSession session(layer, [&](const NamedTensors& inputs) {
    ++recorded;
    return attend_to_context(layer)(inputs);
  });
  for (int i = 0; i < 3; ++i) session.run(inputs_of(1, 4, 8));
  EXPECT_EQ(recorded, 1);
  session.run(inputs_of(1, 4, 9));
  EXPECT_EQ(recorded, 2);
}

// Token ids [B, N] → embeddings plus positions, normalised.
class TextEmbedding : public nn::Module {
 public:
  explicit TextEmbedding(const ParamSource& params)
      : tokens_(params.get("tokens", {11, kAttentionDim},
                           [](Tensor& t, uint64_t key) { t.copy_(Tensor::randn(t.shape(), key)); })),
        positions_(params.get("positions", {6, kAttentionDim},
                              [](Tensor& t, uint64_t key) { t.copy_(Tensor::randn(t.shape(), key)); })),
        norm_(kAttentionDim, 1e-5, params.child("norm")) {}
  Tensor forward(const Tensor& ids) const {
    return norm_.forward(ops::add(ops::embedding(ids, tokens_), positions_.narrow(0, 0, ids.size(1))));
  }
  std::string type() const override { return "TextEmbedding"; }
  void visit(nn::Visitor& visitor) override {
    visitor.parameter("tokens", tokens_);
    visitor.parameter("positions", positions_);
    visitor.child("norm", static_cast<nn::Module&>(norm_));
  }

 private:
  Tensor tokens_, positions_;
  nn::LayerNorm norm_;
};

TEST(FunctionSession, TakesTokenIds) {
  RandomParams random(5);
  TextEmbedding text{ParamSource(random)};
  const Function forward = [&text](const NamedTensors& inputs) -> NamedTensors {
    return {{"tokens", text.forward(find_tensor(inputs, "ids"))}};
  };
  const FunctionSession session(text, forward, {.threads = 2, .split_batch = true});
  const Tensor ids = Tensor::from<int64_t>({3, 4}, {0, 1, 2, 3, 10, 9, 8, 7, 5, 5, 0, 10});
  const Tensor want = text.forward(ids);
  EXPECT_TRUE(testing::close(session.run({{"ids", ids}})[0].tensor, want, 1e-6));
  EXPECT_TRUE(testing::close(session.run({{"ids", ids.to(DType::i32)}})[0].tensor, want, 1e-6));
  const Tensor outside = Tensor::from<int64_t>({1, 2}, {3, 11});
  const std::string message = testing::error_of([&] { session.run({{"ids", outside}}); });
  EXPECT_TRUE(testing::contains(message, "ids from 0 to 10")) << message;
}

TEST(FunctionSession, InputsOfAnotherOrderNumberOrBatchAreErrors) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer), {.split_batch = true});
  const NamedTensors inputs = inputs_of(2, 4, 8);
  session.run(inputs);
  const std::string message = testing::error_of([&] { session.run({inputs[1], inputs[0]}); });
  EXPECT_TRUE(testing::contains(message, "queries, context")) << message;
  EXPECT_THROW(session.run({inputs[0]}), Error);
  EXPECT_THROW(session.run({}), Error);
  EXPECT_THROW(session.run({inputs[0], {"context", inputs[1].tensor.narrow(0, 0, 1)}}), Error);
}

// A first call with missing inputs does not fix their names.
TEST(FunctionSession, AFailedFirstCallLeavesTheSessionUsable) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer));
  const NamedTensors inputs = inputs_of(1, 4, 8);
  EXPECT_THROW(session.run({inputs[1]}), Error);
  EXPECT_EQ(session.run(inputs).size(), 2U);
}

TEST(FunctionSession, OutputsThatChangeTheirNamesAreAnError) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, [&](const NamedTensors& inputs) {
    NamedTensors outputs = attend_to_context(layer)(inputs);
    if (inputs[0].tensor.size(1) == 5) outputs[0].name = "other";
    return outputs;
  });
  session.run(inputs_of(1, 4, 8));
  const std::string message = testing::error_of([&] { session.run(inputs_of(1, 5, 8)); });
  EXPECT_TRUE(testing::contains(message, "outputs out, weights, got other, weights")) << message;
}

// Splitting would otherwise copy parts of the wrong size.
TEST(FunctionSession, AnOutputWithoutTheBatchCannotBeSplit) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer,
                                [&](const NamedTensors& inputs) -> NamedTensors {
                                  return {{"mean", ops::mean(attend_to_context(layer)(inputs)[0].tensor, 0)}};
                                },
                                {.split_batch = true});
  const std::string message = testing::error_of([&] { session.run(inputs_of(3, 4, 8)); });
  EXPECT_TRUE(testing::contains(message, "first extent is the batch")) << message;
}

TEST(FunctionSession, CompilesOnItsOwnNumberOfThreads) {
  nn::MultiheadAttention layer = cross_attention();
  int threads = 0;
  const FunctionSession session(layer,
                                [&](const NamedTensors& inputs) {
                                  threads = num_threads();
                                  return attend_to_context(layer)(inputs);
                                },
                                {.threads = 1});
  session.run(inputs_of(1, 4, 8));
  EXPECT_EQ(threads, 1);
}

// The bytes of integers are not floats.
TEST(FunctionSession, IntegersAsFloatOperandsAreAnError) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, [](const NamedTensors& inputs) -> NamedTensors {
    return {{"sum", ops::add(find_tensor(inputs, "x"), find_tensor(inputs, "ids"))}};
  });
  const Tensor x = Tensor::randn({2, 3}, 1), ids = Tensor::from<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::string message = testing::error_of([&] { session.run({{"x", x}, {"ids", ids}}); });
  EXPECT_TRUE(testing::contains(message, "f32 operands")) << message;
}

TEST(FunctionSession, AnOutputThatNothingComputesIsAnError) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, [](const NamedTensors& inputs) { return inputs; });
  EXPECT_THROW(session.run(inputs_of(1, 4, 8)), Error);
}

// Dropout would otherwise be a part of the program.
TEST(FunctionSession, PutsAModuleInTrainingIntoEvalMode) {
  const auto make = [] {
    RandomParams random(3);
    return nn::Mlp({.in_features = 8, .hidden_features = 40, .dropout = 0.5}, ParamSource(random));
  };
  const nn::Mlp reference = make();
  nn::Mlp layer = make();
  layer.train();
  const FunctionSession session(layer, [&layer](const NamedTensors& inputs) -> NamedTensors {
    return {{"y", layer.forward(inputs[0].tensor)}};
  });
  EXPECT_FALSE(layer.training());
  const Tensor x = Tensor::randn({5, 8}, 1);
  EXPECT_TRUE(testing::close(session.run({{"x", x}})[0].tensor, reference.forward(x), 1e-5));
}

// The bytes of a strided tensor are not all its own.
TEST(FunctionSession, AStridedResultIsAnErrorAndIsNotWritten) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer));
  const NamedTensors inputs = inputs_of(1, 4, 8), want = session.run(inputs);
  const Tensor memory = Tensor::full({1, 4, 2 * kAttentionDim}, 7), weights = Tensor::zeros(want[1].tensor.shape());
  for (const Tensor& strided :
       {memory.narrow(2, 0, kAttentionDim), memory.narrow(2, 0, kAttentionDim).transpose(1, 2)}) {
    const std::string message = testing::error_of([&] { session.run_into(inputs, {strided, weights}); });
    EXPECT_TRUE(testing::contains(message, "a contiguous result f32 [1, 4, 64]")) << message;
  }
  EXPECT_TRUE(testing::close(memory, Tensor::full({1, 4, 2 * kAttentionDim}, 7), 0));
}

TEST(FunctionSession, TakesEveryFloatingTypeAndLayout) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer));
  NamedTensors inputs = inputs_of(2, 4, 8);
  for (nn::NamedTensor& input : inputs) input.tensor = input.tensor.to(DType::bf16).to(DType::f32);
  const Tensor want = session.run(inputs)[0].tensor;
  for (const DType dtype : {DType::bf16, DType::f64}) {
    const NamedTensors converted{{"queries", inputs[0].tensor.to(dtype)}, {"context", inputs[1].tensor.to(dtype)}};
    EXPECT_TRUE(testing::close(session.run(converted)[0].tensor, want, 0)) << name_of(dtype);
  }
  const Tensor strided = inputs[0].tensor.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(testing::close(session.run({{"queries", strided}, inputs[1]})[0].tensor, want, 0));
}

// More shapes than programs and plans are kept; the first ones are compiled again.
TEST(FunctionSession, ManyShapesHaveTheirOwnResults) {
  const nn::MultiheadAttention reference = cross_attention();
  for (const bool split_batch : {false, true}) {
    nn::MultiheadAttention layer = cross_attention();
    const FunctionSession session(layer, attend_to_context(layer), {.threads = 2, .split_batch = split_batch});
    for (const int64_t offset : {0, 0, 5}) {
      for (int64_t n = 1; n <= 40; ++n) {
        const NamedTensors inputs = inputs_of(1 + n % 3, n, 1 + (n + offset) % 7);
        EXPECT_TRUE(testing::close(session.run(inputs)[0].tensor, attend_to_context(reference)(inputs)[0].tensor, 1e-5))
            << n;
      }
    }
  }
}

TEST(FunctionSession, MoreInputsThanAProgramTakesAreAnError) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, [](const NamedTensors& inputs) -> NamedTensors {
    Tensor sum = inputs[0].tensor;
    for (size_t i = 1; i < inputs.size(); ++i) sum = ops::add(sum, inputs[i].tensor);
    return {{"sum", sum}};
  });
  NamedTensors inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back({std::to_string(i), Tensor::full({2}, i)});
  EXPECT_TRUE(testing::contains(testing::error_of([&] { session.run(inputs); }), "1 to 8 inputs, got 9"));
  inputs.pop_back();
  EXPECT_TRUE(testing::close(session.run(inputs)[0].tensor, Tensor::full({2}, 28), 0));
}

TEST(FindTensor, NamesTheTensorsThatThereAre) {
  const NamedTensors tensors{{"a", Tensor::zeros({1})}, {"b", Tensor::zeros({2})}};
  EXPECT_EQ(find_tensor(tensors, "b").numel(), 2);
  EXPECT_EQ(testing::error_of([&] { find_tensor(tensors, "c"); }), "tensors: expected a tensor named c, got a, b");
  EXPECT_EQ(testing::error_of([&] { find_tensor({}, "c"); }), "tensors: expected a tensor named c, got none");
}

// There is no attention in int8: it has the precision of the layers that are left out.
TEST(FunctionSession, AttentionOfAnInt8SessionHasTheExcludedPrecision) {
  const Tensor q = Tensor::randn({2, 4, 64, 16}, 1), k = Tensor::randn({2, 4, 64, 16}, 2);
  const auto attended = [&](const FunctionOptions& options) {
    RandomParams random(1);
    nn::Linear layer(4, 4, true, ParamSource(random));
    const FunctionSession session(
        layer,
        [](const NamedTensors& in) -> NamedTensors {
          return {{"out", ops::attention(in[0].tensor, in[1].tensor, in[1].tensor, 0.5).out}};
        },
        options);
    return session.run({{"q", q}, {"k", k}})[0].tensor;
  };
  const Tensor fp32 = attended({.precision = Precision::fp32}), half = attended({.precision = Precision::half});
  EXPECT_EQ(bool(testing::close(half, fp32, 0)), !kernels::attention_multiplies_bf16());
  EXPECT_TRUE(testing::close(attended({.precision = Precision::int8}), half, 0)) << "the default";
  EXPECT_TRUE(testing::close(attended({.precision = Precision::int8, .excluded_precision = Precision::fp32}), fp32, 0));
  EXPECT_TRUE(testing::close(attended({.precision = Precision::half, .excluded_precision = Precision::fp32}), half, 0));
}

TEST(FunctionSession, LayersOfOtherNamesAreErrors) {
  nn::MultiheadAttention layer = cross_attention();
  using Options = FunctionOptions;
  EXPECT_THROW(FunctionSession(layer, attend_to_context(layer), Options{.retained_layers = {"absent"}}), Error);
  EXPECT_THROW(FunctionSession(layer, attend_to_context(layer),
                               Options{.precision = Precision::int8, .excluded_layers = {"absent"}}),
               Error);
}

// The sum may not be written over the input while other columns of it are still computed.
TEST_P(CrossAttention, AResidualMayBeTheInputOfItsLayer) {
  const bool fp32 = GetParam() == Precision::fp32;
  const auto make = [] {
    RandomParams random(3);
    return nn::Linear(300, 300, true, ParamSource(random));
  };
  const nn::Linear reference = make();
  nn::Linear layer = make();
  const auto function = [](const nn::Linear& linear, const Tensor& x) {
    const Tensor hidden = ops::add(x, x);
    return ops::residual_add(hidden, linear.forward(hidden));
  };
  const FunctionSession session(layer,
                                [&](const NamedTensors& inputs) -> NamedTensors {
                                  return {{"y", function(layer, inputs[0].tensor)}};
                                },
                                {.precision = GetParam()});
  const Tensor x = Tensor::randn({2, 150, 300}, 1);
  EXPECT_LE(relative_error(session.run({{"x", x}})[0].tensor, function(reference, x)), fp32 ? 1e-6 : 0.01);
}

TEST(FunctionSession, ErrorsListTheNamesOfInputs) {
  nn::MultiheadAttention layer = cross_attention();
  const FunctionSession session(layer, attend_to_context(layer));
  const NamedTensors inputs = inputs_of(1, 4, 8);
  session.run(inputs);
  const auto message = [&](const NamedTensors& given) { return testing::error_of([&] { session.run(given); }); };
  EXPECT_EQ(message({inputs[1], inputs[0]}),
            "session: expected inputs queries, context, in this order as in the first call, got context, queries");
  EXPECT_EQ(message({inputs[0]}),
            "session: expected inputs queries, context, in this order as in the first call, got queries");
  EXPECT_EQ(message({}), "session: expected 1 to 8 inputs, got 0");
}

// The output of a session of an MLP with drawn weights.
Tensor mlp_output(const FunctionOptions& options) {
  RandomParams random(3);
  nn::Mlp layer({.in_features = 48, .hidden_features = 64}, ParamSource(random));
  const FunctionSession session(
      layer,
      [&layer](const NamedTensors& in) -> NamedTensors {
        return {{"y", layer.forward(in[0].tensor)}};
      },
      options);
  return session.run({{"x", Tensor::randn({5, 48}, 1)}})[0].tensor;
}

// Each excluded layer keeps its precision, in int8 sessions alone.
TEST(FunctionSession, ExcludedLayersHaveTheirOwnPrecision) {
  const Tensor exact = mlp_output({});
  const Tensor int8 = mlp_output({.precision = Precision::int8});
  EXPECT_FALSE(testing::close(int8, exact, 1e-6));
  const Tensor one =
      mlp_output({.precision = Precision::int8, .excluded_layers = {"fc1"}, .excluded_precision = Precision::fp32});
  EXPECT_FALSE(testing::close(one, exact, 1e-6));
  EXPECT_FALSE(testing::close(one, int8, 1e-6));
  EXPECT_TRUE(testing::close(
      mlp_output(
          {.precision = Precision::int8, .excluded_layers = {"fc1", "fc2"}, .excluded_precision = Precision::fp32}),
      exact, 0));
  EXPECT_TRUE(
      testing::close(mlp_output({.excluded_layers = {"fc1"}, .excluded_precision = Precision::int8}), exact, 0));
}

// In a session of another precision, the layers that are named are int8: the result is that of an int8 session where
// all others are excluded.
TEST(FunctionSession, Int8LayersAreThoseThatAreNamed) {
  const Tensor want =
      mlp_output({.precision = Precision::int8, .excluded_layers = {"fc2"}, .excluded_precision = Precision::fp32});
  EXPECT_TRUE(testing::close(mlp_output({.int8_layers = {"fc1"}}), want, 0));
  EXPECT_FALSE(testing::close(mlp_output({}), want, 1e-6));
}

TEST(FunctionSession, RetainAllLetsOtherSessionsPackTheModule) {
  RandomParams random(3);
  nn::Mlp layer({.in_features = 48, .hidden_features = 64}, ParamSource(random));
  const Tensor x = Tensor::randn({5, 48}, 1), want = layer.forward(x);
  for (int i = 0; i < 2; ++i) {
    const FunctionSession session(layer,
                                  [&layer](const NamedTensors& in) -> NamedTensors {
                                    return {{"y", layer.forward(in[0].tensor)}};
                                  },
                                  {.retain_all = true});
    EXPECT_TRUE(testing::close(session.run({{"x", x}})[0].tensor, want, 1e-5, 1e-5));
  }
  EXPECT_TRUE(testing::close(layer.forward(x), want, 0));
}

TEST(FunctionSession, RetainedWeightsKeepTheirMemoryAndOthersDoNot) {
  RandomParams random(3);
  nn::Mlp layer({.in_features = 48, .hidden_features = 64}, ParamSource(random));
  const FunctionSession session(layer,
                                [&layer](const NamedTensors& in) -> NamedTensors {
                                  return {{"y", layer.forward(in[0].tensor)}};
                                },
                                {.retained_layers = {"fc2"}});
  session.run({{"x", Tensor::randn({5, 48}, 1)}});
  EXPECT_TRUE(layer.parameter("fc1.weight").is_meta());
  EXPECT_FALSE(layer.parameter("fc2.weight").is_meta());
  EXPECT_GE(session.packed_bytes(), 2u * 48u * 64u * sizeof(float));
}

// Operations with a kernel for half precision run in the precision of attention, on every processor.
TEST(FunctionSession, OperationsHaveThePrecisionOfAttention) {
  const auto run = [](const FunctionOptions& options) {
    RandomParams random(1);
    nn::Linear layer(4, 4, true, ParamSource(random));
    const FunctionSession session(
        layer,
        [](const NamedTensors& in) -> NamedTensors {
          ops::Operation step{.name = "step", .shape = {1}};
          step.kernel = [](auto, auto out) { out[0].data[0] = 32; };
          step.half_kernel = [](auto, auto out) { out[0].data[0] = 16; };
          return {{"y", ops::apply(std::move(step), {in[0].tensor})}};
        },
        options);
    return session.run({{"x", Tensor::zeros({1})}})[0].tensor.data<float>()[0];
  };
  EXPECT_EQ(run({}), 32);
  EXPECT_EQ(run({.excluded_precision = Precision::half}), 32);
  EXPECT_EQ(run({.precision = Precision::half, .excluded_precision = Precision::fp32}), 16);
  EXPECT_EQ(run({.precision = Precision::int8}), 16) << "the default of excluded layers";
  EXPECT_EQ(run({.precision = Precision::int8, .excluded_precision = Precision::fp32}), 32);
}

}  // namespace
}  // namespace vitrail::infer
