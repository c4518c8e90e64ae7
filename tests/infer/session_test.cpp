// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/kernels/rowwise/l2_normalize.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/load.h"

namespace vitrail::infer {
namespace {

using testing::model_of;
using testing::relative_error;

class SessionOfFixture : public ::testing::TestWithParam<std::string> {};

// Compiled and eager execution compute the same function with a different order of operations.
constexpr double kEagerTolerance = 1e-5;

TEST_P(SessionOfFixture, EqualsTheReferenceAndTheEagerModel) {
  const auto folder = testing::model_fixture(GetParam()).parent_path();
  const testing::Golden golden = testing::read_golden(folder / "golden.safetensors");
  const double tolerance = testing::parity_tolerance(GetParam());
  for (const std::string suffix : {"", "2"}) {
    if (!golden.has("input" + suffix)) continue;
    const Tensor input = golden["input" + suffix];
    const models::VisionTransformer eager = model_of(GetParam(), input);
    const Session session(model_of(GetParam(), input));
    const Tensor logits = session.logits(input);
    EXPECT_TRUE(testing::close(logits, eager.forward(input), tolerance, tolerance)) << suffix;
    if (golden.has("logits" + suffix)) {
      EXPECT_TRUE(testing::close(logits, golden["logits" + suffix], tolerance, tolerance)) << suffix;
    }
    const Request tokens{.output = Output::features, .features = {.tokens = Tokens::all}};
    EXPECT_TRUE(testing::close(session.run(input, tokens)[0], golden["tokens" + suffix], tolerance, tolerance))
        << suffix;
  }
}

TEST_P(SessionOfFixture, AttentionMapsEqualTheEagerModels) {
  const auto folder = testing::model_fixture(GetParam()).parent_path();
  const Tensor input = testing::read_golden(folder / "golden.safetensors")["input"];
  const std::vector<Tensor> eager = model_of(GetParam()).attention_maps(input);
  const std::vector<Tensor> compiled =
      Session(model_of(GetParam())).run(input, {.output = Output::attention, .all_layers = true});
  ASSERT_EQ(compiled.size(), eager.size());
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_TRUE(testing::close(compiled[i], eager[i], kEagerTolerance, kEagerTolerance)) << i;
}

class DeadTokens : public ::testing::TestWithParam<kernels::Precision> {};

// A request for the CLS token gives the same values as a request for all tokens, with fewer operations.
TEST_P(DeadTokens, TheirEliminationKeepsTheClsFeatures) {
  const Session session(model_of("timm_token"), {.precision = GetParam()});
  const auto& config = session.config();
  const Tensor images = Tensor::randn({3, config.in_chans, config.img_size[0], config.img_size[1]}, 5);
  const Request cls{.output = Output::features, .features = {.tokens = Tokens::cls}};
  const Tensor all = session.run(images, {.output = Output::features, .features = {.tokens = Tokens::all}})[0];
  EXPECT_TRUE(testing::close(session.run(images, cls)[0], all.narrow(1, 0, 1).contiguous().view({3, all.size(2)}),
                             kEagerTolerance, kEagerTolerance));

  const auto program = session.program(images.shape(), cls);
  double computed = 0;
  for (const Step& step : program->steps()) computed += step.flops;
  EXPECT_LT(computed, models::forward_flops(session.model(), images.shape()));
}

INSTANTIATE_TEST_SUITE_P(Precisions, DeadTokens,
                         ::testing::Values(kernels::Precision::fp32, kernels::Precision::half,
                                           kernels::Precision::int8),
                         [](const auto& info) { return std::string(kernels::name_of(info.param)); });

// The batch is chosen so that the last pass is smaller.  Each image has the same result as in a batch of one.
TEST(Session, ABatchLargerThanTheCacheRunsInSeveralPasses) {
  const Session session(model_of("timm_token"), {.threads = 1});
  const auto& config = session.config();
  auto shape = [&](int64_t batch) { return Shape{batch, 3, config.img_size[0], config.img_size[1]}; };
  int64_t batch = 2;
  while (session.images_per_pass(shape(batch)) == batch) batch *= 2;
  while (batch % session.images_per_pass(shape(batch)) == 0) ++batch;
  const int64_t per_pass = session.images_per_pass(shape(batch));
  const Tensor images = Tensor::randn(shape(batch), 1);
  for (const Request& request : {Request{}, Request{.output = Output::features, .features = {.tokens = Tokens::all}}}) {
    const Tensor batched = session.run(images, request)[0];
    ASSERT_EQ(batched.size(0), batch);
    for (const int64_t i : {int64_t{0}, per_pass - 1, per_pass, batch - 1}) {
      const Tensor single = session.run(images.narrow(0, i, 1), request)[0];
      EXPECT_TRUE(testing::close(batched.narrow(0, i, 1), single, 1e-6, 1e-6)) << i;
    }
  }
}

// Data-parallel split: each of n threads runs the same number of images; all threads share each remaining image.
TEST(Session, EachThreadRunsWholeImagesAndAllShareTheRemainder) {
  for (const int threads : {1, 2, 3}) {
    const Session session(model_of("timm_token"), {.threads = threads});
    const auto& config = session.config();
    for (int64_t batch = 1; batch <= 8; ++batch) {
      const Tensor images = Tensor::randn({batch, 3, config.img_size[0], config.img_size[1]}, 7);
      EXPECT_EQ(session.threads_at_work(images.shape()), batch < threads ? threads : 1);
      EXPECT_EQ(session.images_per_pass(images.shape()), batch < threads ? batch : batch / threads);
      const Tensor batched = session.logits(images);
      for (int64_t i = 0; i < batch; ++i) {
        EXPECT_TRUE(testing::close(session.logits(images.narrow(0, i, 1)), batched.narrow(0, i, 1), 0))
            << threads << " threads, image " << i << " of " << batch;
      }
    }
  }
}

// Half precision has a relative error per value of at most 2⁻⁹ where bf16 is used, for all operands (AMX), for weights
// (without VNNI) or in attention, and of 2⁻¹⁵ of a row's maximum in int16.  Errors partly cancel within an accumulation
// and add up over layers: the worst fixture has an error of 0.015, 0.0071, 0.0021 or 0.00023.
double half_limit() {
  const kernels::FeatureSet features = kernels::active_features();
  if (features.has(kernels::Feature::amx)) return 0.02;
  if (!features.has(kernels::Feature::avx512_vnni)) return 0.01;
  return features.has(kernels::Feature::avx512_bf16) ? 0.004 : 0.0005;
}

// In int8 the error of an activation is at most half a scale, 1/254 of the maximum, and that of a weight twice as much
// where values are limited to ±63.
TEST_P(SessionOfFixture, LowerPrecisionHasASmallError) {
  const auto folder = testing::model_fixture(GetParam()).parent_path();
  const Tensor input = testing::read_golden(folder / "golden.safetensors")["input"];
  const Request tokens{.output = Output::features, .features = {.tokens = Tokens::all}};
  const Tensor exact = Session(model_of(GetParam(), input)).run(input, tokens)[0];
  for (const auto& [precision, limit] :
       {std::pair{kernels::Precision::half, half_limit()}, std::pair{kernels::Precision::int8, 0.06}}) {
    const Session session(model_of(GetParam(), input), {.precision = precision});
    const double error = relative_error(session.run(input, tokens)[0], exact);
    if (precision == kernels::Precision::int8) {  // half may equal fp32: a fixture's weights may be bf16
      EXPECT_GT(error, 0);
    }
    EXPECT_LT(error, limit) << name_of(precision);
  }
}

// Keys and values of attention pooling are rounded too; its other layers are fp32.
TEST(Session, AttentionPoolingHasASmallErrorInLowerPrecision) {
  const Tensor input = testing::read_golden(testing::fixture("models/timm_map/golden.safetensors"))["input"];
  const Tensor exact = Session(model_of("timm_map")).logits(input);
  for (const auto& [precision, limit] :
       {std::pair{kernels::Precision::half, half_limit()}, std::pair{kernels::Precision::int8, 0.06}}) {
    EXPECT_LT(relative_error(Session(model_of("timm_map"), {.precision = precision}).logits(input), exact), limit)
        << name_of(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SessionOfFixture, ::testing::ValuesIn(testing::model_fixtures()),
                         [](const auto& info) { return testing::test_name(info.param); });

// The excluded layers of an int8 file have no effect on fp32 sessions.
TEST(Session, ExcludedLayersDoNotAffectFp32) {
  const Tensor input = testing::input_of("timm_token");
  const Session plain(model_of("timm_token")),
      excluding(model_of("timm_token"), {.excluded_layers = {"blocks.0.mlp.fc1"}});
  EXPECT_TRUE(testing::close(excluding.logits(input), plain.logits(input), 0));
}

Tensor images(int64_t batch, uint64_t seed) { return Tensor::randn({batch, 3, 32, 32}, seed); }

TEST(Session, EachImageOfABatchHasTheSameBitsAsInABatchOfOne) {
  const Session session(model_of("timm_token"));
  const Tensor batch = images(5, 3), batched = session.logits(batch);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(testing::close(session.logits(batch.narrow(0, i, 1)), batched.narrow(0, i, 1), 0)) << i;
  }
}

TEST(Session, ConcurrentRunsOfSeveralBatchSizesEqualSingleRuns) {
  for (const int threads : {1, 2}) {
    const Session session(model_of("timm_token"), {.threads = threads});
    const Session reference(model_of("timm_token"), {.threads = threads});
    std::vector<Tensor> inputs, expected;
    for (const int64_t batch : {1, 3, 8}) {
      inputs.push_back(images(batch, 10 + static_cast<uint64_t>(batch)));
      expected.push_back(reference.logits(inputs.back()));
    }
    std::vector<std::thread> callers;
    std::vector<int> wrong(4, 0);
    for (size_t caller = 0; caller < wrong.size(); ++caller) {
      callers.emplace_back([&, caller] {
        for (size_t round = 0; round < 12; ++round) {
          const size_t which = (caller + round) % inputs.size();
          if (!testing::close(session.logits(inputs[which]), expected[which], 0)) ++wrong[caller];
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0)) << threads << " threads";
  }
}

TEST(Session, LayersCountFromBothEnds) {
  const Session session(model_of("timm_token"));
  const Tensor input = images(1, 4);
  const Request first{.output = Output::features,
                      .features = {.tokens = Tokens::all, .layers = {0}, .final_norm = false}};
  Request from_end = first;
  from_end.features.layers = {-2};  // the model has two blocks
  EXPECT_TRUE(testing::close(session.run(input, from_end)[0], session.run(input, first)[0], 0));
  Request beyond = first;
  beyond.features.layers = {2};
  EXPECT_THROW(session.run(input, beyond), Error);
}

// One pass gives the features of each block that single requests give.
TEST(Session, SeveralLayersAreComputedInOnePass) {
  const Session session(model_of("timm_reg_tokens"));
  const Tensor input = images(2, 3);
  const std::vector<std::vector<int64_t>> lists{{-1, 0}, {0, 1, 0}, {-1, 0}};
  for (const Tokens tokens : {Tokens::pooled, Tokens::cls, Tokens::patch, Tokens::grid, Tokens::all}) {
    for (const bool normalize : {true, false}) {
      for (const std::vector<int64_t>& layers : lists) {
        const Request request{.output = Output::features,
                              .features = {.tokens = tokens, .layers = layers, .final_norm = normalize}};
        const Tensor together = session.run(input, request)[0];
        ASSERT_EQ(together.size(1), static_cast<int64_t>(layers.size()));
        for (size_t i = 0; i < layers.size(); ++i) {
          Request single = request;
          single.features.layers = {layers[i]};
          EXPECT_TRUE(testing::close(together.select(1, static_cast<int64_t>(i)), session.run(input, single)[0], 1e-6));
        }
      }
    }
  }
  EXPECT_THROW(session.run(input, {.output = Output::features, .features = {.layers = {0, 2}}}), Error) << "two blocks";
}

// The scaling is that of normalize_row(), after the pass.
TEST(Session, FeaturesHaveLengthOneIfAsked) {
  const Session session(model_of("timm_reg_tokens"));
  const Tensor input = images(2, 3);
  for (const Output output : {Output::features, Output::logits_and_features, Output::logits}) {
    Request request{.output = output, .features = {.tokens = Tokens::all}};
    const std::vector<Tensor> plain = session.run(input, request);
    request.features.l2_normalize = true;
    const std::vector<Tensor> scaled = session.run(input, request);
    const Tensor want = plain.back();
    kernels::normalize_rows(want.data<float>(), want.numel() / want.size(-1), want.size(-1));
    EXPECT_TRUE(testing::close(scaled.back(), want, 0));
    EXPECT_TRUE(plain.size() == 1 || testing::close(scaled[0], plain[0], 0)) << "not the logits beside them";
    session.run_into(input, request, plain);
    EXPECT_TRUE(testing::close(plain.back(), want, 0));
  }
  const Request attention{.output = Output::attention, .features = {.l2_normalize = true}};
  EXPECT_TRUE(
      testing::close(session.run(input, attention)[0], session.run(input, {.output = Output::attention})[0], 0));
}

TEST(Session, TheGridHasThePatchesInRows) {
  const Session session(model_of("timm_non_square"));
  const Tensor input = Tensor::randn({2, 3, 24, 16}, 5);
  const Tensor patches = session.run(input, {.output = Output::features, .features = {.tokens = Tokens::patch}})[0];
  const Tensor grid = session.run(input, {.output = Output::features, .features = {.tokens = Tokens::grid}})[0];
  EXPECT_EQ(grid.shape(), (Shape{2, 6, 2, 18}));
  EXPECT_TRUE(testing::close(grid.view({2, 12, 18}), patches, 0));
}

TEST(Session, AnUnsupportedImageSizeIsAnErrorThatNamesBothSizes) {
  const Session session(model_of("timm_token"));
  try {
    session.logits(Tensor::randn({1, 3, 24, 32}, 1));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("24×32"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("32×32"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(session.logits(images(1, 1)));  // still usable
}

TEST(Session, OriginalWeightsAreReleasedAfterPacking) {
  const Session session(model_of("timm_token"));
  session.logits(images(1, 1));
  EXPECT_GT(session.packed_bytes(), 0u);
  EXPECT_TRUE(session.model().parameter("blocks.0.attn.qkv.weight").is_meta());
  EXPECT_FALSE(session.model().parameter("pos_embed").is_meta());
}

TEST(Session, FeaturesOfTheClassTokenNeedOne) {
  const Session session(model_of("timm_avg_no_class_token"));
  ASSERT_FALSE(session.config().class_token);
  const auto& config = session.config();
  const Tensor input = Tensor::randn({1, config.in_chans, config.img_size[0], config.img_size[1]}, 1);
  for (const std::vector<int64_t>& layers : {std::vector<int64_t>{0}, {0, -1}}) {
    const Request request{.output = Output::features, .features = {.tokens = Tokens::cls, .layers = layers}};
    EXPECT_TRUE(testing::contains(testing::error_of([&] { session.run(input, request); }), "no class token"));
    EXPECT_NO_THROW(
        session.run(input, {.output = Output::features, .features = {.tokens = Tokens::pooled, .layers = layers}}));
  }
}

TEST(Session, LogitsAndFeaturesAreThoseOfSingleRequests) {
  for (const char* fixture : {"timm_token", "timm_avg"}) {
    const Session session(model_of(fixture));
    const Tensor input = testing::input_of(fixture);
    for (const Tokens tokens : {Tokens::pooled, Tokens::patch, Tokens::all}) {
      for (const int64_t layer : {int64_t{-1}, session.config().depth - 1}) {
        const Request both{.output = Output::logits_and_features, .features = {.tokens = tokens, .layers = {layer}}};
        const std::vector<Tensor> got = session.run(input, both);
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(testing::close(got[0], session.logits(input), 1e-5, 1e-5)) << fixture;
        EXPECT_TRUE(testing::close(
            got[1], session.run(input, {.output = Output::features, .features = {.tokens = tokens}})[0], 1e-5, 1e-5))
            << fixture;
      }
    }
    const auto other = [&](int64_t layer, bool normalize) {
      session.run(input,
                  {.output = Output::logits_and_features, .features = {.layers = {layer}, .final_norm = normalize}});
    };
    EXPECT_THROW(other(0, true), Error) << "the head reads the last block";
    EXPECT_THROW(other(-1, false), Error) << "the head reads normalised tokens";
  }
}

TEST(Session, RefusesEmptyBatchesOtherRanksAndOptions) {
  const Session session(model_of("timm_token"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] {
                                  session.logits(Tensor::zeros({0, 3, 32, 32}));
                                }),
                                "at least one image"));
  EXPECT_THROW(session.logits(Tensor::zeros({3, 32, 32})), Error);
  EXPECT_THROW(Session(model_of("timm_token"), {.merged_per_block = -1}), Error);
  EXPECT_THROW(
      Session(model_of("timm_token"), {.precision = kernels::Precision::int8, .excluded_layers = {"blocks.9.mlp.fc1"}}),
      Error);
}

TEST(Session, ProfilesEachStepOfOnePass) {
  for (const int64_t batch : {1, 5}) {
    const Session session(model_of("timm_token"), {.threads = 2});
    const Tensor input = images(batch, 1);
    std::vector<size_t> steps;
    session.profile(input, [&](size_t step, double seconds) {
      EXPECT_GE(seconds, 0);
      steps.push_back(step);
    });
    const int64_t per_pass = session.images_per_pass(input.shape());
    ASSERT_EQ(steps.size(), session.program({per_pass, 3, 32, 32})->steps().size());
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i);
  }
}

TEST(Session, TakesImagesOfAnyTypeAndLayout) {
  const Session session(model_of("timm_token"));
  const Tensor input = images(2, 1).to(DType::bf16), want = session.logits(input.to(DType::f32));
  EXPECT_TRUE(testing::close(session.logits(input), want, 0));
  const Tensor channels_last = input.to(DType::f32).permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
  EXPECT_TRUE(testing::close(session.logits(channels_last), want, 0));
  const Tensor result = Tensor::zeros({2, 10});
  session.run_into(channels_last, {}, {result});
  EXPECT_TRUE(testing::close(result, want, 0));
}

// Each kind of request has a program of its own, which the next such request finds.
TEST(Session, RequestsThatDifferHaveOtherPrograms) {
  const Session session(model_of("timm_reg_tokens"));
  const Shape shape{1, 3, 32, 32};
  std::vector<Request> requests{{},
                                {.output = Output::attention},
                                {.output = Output::attention, .layer = 0},
                                {.output = Output::attention, .all_layers = true},
                                {.output = Output::logits_and_features},
                                {.output = Output::logits_and_features, .features = {.tokens = Tokens::all}},
                                {.output = Output::features, .features = {.layers = {0, 1}}},
                                {.output = Output::features, .features = {.layers = {0, 1}, .final_norm = false}},
                                {.output = Output::features, .features = {.tokens = Tokens::all, .layers = {0, 1}}}};
  for (const Tokens tokens : {Tokens::pooled, Tokens::cls, Tokens::patch, Tokens::grid, Tokens::all}) {
    for (const int64_t layer : {-2, -1, 0, 1}) {
      for (const bool normalize : {false, true}) {
        requests.push_back(
            {.output = Output::features, .features = {.tokens = tokens, .layers = {layer}, .final_norm = normalize}});
      }
    }
  }
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Request& request : requests) {
    programs.push_back(session.program(shape, request));
    EXPECT_EQ(session.program(shape, request), programs.back());
    for (size_t i = 0; i + 1 < programs.size(); ++i) EXPECT_NE(programs[i], programs.back()) << i;
  }
}

// Against the eager model, for each part of the request.
TEST(Session, FeaturesAreThoseOfTheEagerModel) {
  const models::VisionTransformer eager = model_of("timm_reg_tokens");
  const Session session(model_of("timm_reg_tokens"));
  const Tensor input = images(2, 9);
  const int64_t prefix = eager.num_prefix_tokens();
  ASSERT_GT(prefix, 1);
  for (const int64_t layer : {-2, -1, 0, 1}) {
    for (const bool normalize : {false, true}) {
      const Tensor all = eager.intermediate(input, {.layer = layer, .final_norm = normalize});
      const auto got = [&](Tokens tokens) {
        return session.run(input, {.output = Output::features,
                                   .features = {.tokens = tokens, .layers = {layer}, .final_norm = normalize}})[0];
      };
      EXPECT_TRUE(testing::close(got(Tokens::all), all, kEagerTolerance, kEagerTolerance)) << layer;
      EXPECT_TRUE(testing::close(got(Tokens::cls), all.select(1, 0).contiguous(), kEagerTolerance, kEagerTolerance))
          << layer;
      EXPECT_TRUE(testing::close(got(Tokens::patch), all.narrow(1, prefix, all.size(1) - prefix).contiguous(),
                                 kEagerTolerance, kEagerTolerance))
          << layer;
      EXPECT_TRUE(testing::close(got(Tokens::pooled), eager.pool(all), kEagerTolerance, kEagerTolerance)) << layer;
    }
  }
  for (const int64_t layer : {-2, -1, 0, 1}) {
    const Tensor map = session.run(input, {.output = Output::attention, .layer = layer})[0];
    EXPECT_TRUE(testing::close(map, eager.attention_maps(input, layer).at(0), kEagerTolerance, kEagerTolerance))
        << layer;
  }
}

TEST(Session, ErrorsNameTheRequest) {
  const Session session(model_of("timm_token")), no_class(model_of("timm_avg_no_class_token")),
      merging(model_of("timm_token"), {.merged_per_block = 2});
  const Tensor input = images(1, 1);
  const auto message = [](const Session& of, const Tensor& x, const Request& request) {
    return testing::error_of([&] { of.run(x, request); });
  };
  EXPECT_EQ(message(session, Tensor::zeros({3, 32, 32}), {}), "session: expected images [B, C, H, W], got [3, 32, 32]");
  EXPECT_EQ(message(session, Tensor::zeros({0, 3, 32, 32}), {}),
            "session: expected at least one image, got an empty batch");
  EXPECT_EQ(message(session, input, {.output = Output::logits_and_features, .features = {.layers = {0}}}),
            "session: expected features of the last block with the final norm, as the head reads them, got block 0");
  EXPECT_EQ(message(session, input, {.output = Output::logits_and_features, .features = {.layers = {0, -1}}}),
            "session: expected features of the last block with the final norm, as the head reads them, got 2 blocks");
  EXPECT_EQ(message(session, input, {.output = Output::logits_and_features, .features = {.final_norm = false}}),
            "session: expected features of the last block with the final norm, as the head reads them, got block -1 "
            "without the norm");
  EXPECT_EQ(message(merging, input, {.output = Output::attention}),
            "session: expected a model without token merging (the request needs one token per patch), got 2 merged "
            "tokens per block");
  const auto& config = no_class.config();
  const Tensor other = Tensor::randn({1, config.in_chans, config.img_size[0], config.img_size[1]}, 1);
  EXPECT_EQ(message(no_class, other, {.output = Output::features, .features = {.tokens = Tokens::cls}}),
            "tokens: expected patch, pooled or all (the model has no class token), got cls");
  EXPECT_EQ(testing::error_of([] { Session(model_of("timm_token"), {.merged_per_block = -1}); }),
            "session: expected 0 or more merged tokens, got -1");
}

// Merging is no obstacle for what reads single tokens.
TEST(Session, MergingLeavesLogitsAndPooledFeatures) {
  const Session session(model_of("timm_token"), {.merged_per_block = 2});
  const Tensor input = images(2, 1);
  const std::vector<Tensor> both = session.run(input, {.output = Output::logits_and_features});
  EXPECT_TRUE(testing::close(both[0], session.logits(input), 1e-5, 1e-5));
  EXPECT_TRUE(testing::close(both[1], session.run(input, {.output = Output::features})[0], 1e-5, 1e-5));
}

// The rows of the last block's MLP: those of the tokens that the request reads.
TEST(Session, TheLastBlockComputesTheTokensThatARequestReads) {
  const Session session(model_of("timm_distilled"));
  const auto& config = session.config();
  const Shape shape{1, config.in_chans, config.img_size[0], config.img_size[1]};
  const auto rows = [&](const Request& request) {
    std::string last;
    const auto program = session.program(shape, request);
    for (const Step& step : program->steps()) {
      if (step.text.starts_with("linear+gelu")) last = step.text;
    }
    const size_t result = last.rfind("[1, ");
    return std::stoll(last.substr(result + 4));
  };
  EXPECT_EQ(rows({}), 2) << "the class and the distillation token";
  EXPECT_EQ(rows({.output = Output::features, .features = {.tokens = Tokens::pooled}}), 2);
  EXPECT_EQ(rows({.output = Output::features, .features = {.tokens = Tokens::cls}}), 1);
  EXPECT_EQ(rows({.output = Output::logits_and_features, .features = {.tokens = Tokens::cls}}), 2)
      << "the heads read both";
  EXPECT_EQ(rows({.output = Output::features, .features = {.tokens = Tokens::all}}), 18);
  EXPECT_EQ(rows({.output = Output::features, .features = {.tokens = Tokens::patch}}), 18);
  EXPECT_EQ(rows({.output = Output::logits_and_features, .features = {.tokens = Tokens::patch}}), 18);
}

// The arithmetic of the linear layers, in the order of the program: patch embedding, two blocks, head.
TEST(Session, LayersHaveThePrecisionOfTheirPlace) {
  using kernels::Arithmetic;
  using kernels::Precision;
  const auto arithmetics = [](const char* fixture, const SessionOptions& options) {
    const Session session(model_of(fixture), options);
    const auto& config = session.config();
    std::string text;
    const auto program = session.program({1, config.in_chans, config.img_size[0], config.img_size[1]});
    for (const Step& step : program->steps()) {
      if (step.text.starts_with("linear")) text += step.kernel.arithmetic == Arithmetic::int8 ? 'i' : 'f';
    }
    return text;
  };
  EXPECT_EQ(arithmetics("timm_token", {}), "ffffffffff");
  EXPECT_EQ(arithmetics("timm_token", {.precision = Precision::int8, .excluded_precision = Precision::fp32}),
            "fiiiiiiiif");
  EXPECT_EQ(arithmetics("timm_token", {.precision = Precision::int8, .excluded_precision = Precision::int8}),
            "iiiiiiiiif")
      << "the head is fp32";
  EXPECT_EQ(arithmetics("timm_token", {.precision = Precision::int8,
                                       .excluded_layers = {"blocks.0.mlp.fc1", "blocks.1.attn.qkv"},
                                       .excluded_precision = Precision::fp32}),
            "fiififiiif");
  EXPECT_EQ(arithmetics("timm_token", {.precision = Precision::fp32, .excluded_precision = Precision::int8}),
            "ffffffffff");
  EXPECT_EQ(arithmetics("timm_map", {.precision = Precision::int8, .excluded_precision = Precision::int8}),
            "iiiiiiiiiiffff")
      << "keys and values are int8; the projection, an MLP and the head are not";
}

TEST(Session, StatesItsOptions) {
  const Session session(model_of("timm_token"), {.threads = 3, .precision = kernels::Precision::half});
  EXPECT_EQ(session.threads(), 3);
  EXPECT_EQ(session.precision(), kernels::Precision::half);
  EXPECT_EQ(session.model().merged_per_block(), 0);
  EXPECT_FALSE(session.model().training());
  EXPECT_EQ(session.threads_at_work({2, 3, 32, 32}), 3);
  EXPECT_EQ(session.threads_at_work({3, 3, 32, 32}), 1);
  EXPECT_EQ(Session(model_of("timm_token"), {.merged_per_block = 2}).model().merged_per_block(), 2);
  const SessionOptions defaults;
  EXPECT_EQ(defaults.precision, kernels::Precision::fp32);
  EXPECT_EQ(defaults.excluded_precision, kernels::Precision::half);
  EXPECT_EQ(defaults.threads, 0);
  const Request request;
  EXPECT_EQ(request.output, Output::logits);
  EXPECT_EQ(request.features.tokens, Tokens::pooled);
  EXPECT_EQ(request.features.layers, std::vector<int64_t>{-1});
  EXPECT_TRUE(request.features.final_norm);
  EXPECT_FALSE(request.features.l2_normalize);
  EXPECT_EQ(request.layer, -1);
  EXPECT_FALSE(request.all_layers);
}

}  // namespace
}  // namespace vitrail::infer
