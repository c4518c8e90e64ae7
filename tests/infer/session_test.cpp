// SPDX-License-Identifier: Apache-2.0
#include "vitrail/infer/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/models/flops.h"
#include "vitrail/models/load.h"

namespace vitrail::infer {
namespace {

using testing::model_of;

class SessionOfFixture : public ::testing::TestWithParam<std::string> {};

// Compiled and eager run the same mathematics in another order of operations.
constexpr double kTolerance = 1e-5;

TEST_P(SessionOfFixture, EqualsTheReferenceAndTheEagerModel) {
  const auto folder = testing::model_fixture(GetParam()).parent_path();
  const testing::Golden golden = testing::read_golden(folder / "golden.safetensors");
  for (const std::string suffix : {"", "2"}) {
    if (!golden.has("input" + suffix)) continue;
    const Tensor input = golden["input" + suffix];
    const models::VisionTransformer eager = model_of(GetParam(), input);
    const Session session(model_of(GetParam(), input));
    const Tensor logits = session.logits(input);
    EXPECT_TRUE(testing::close(logits, eager.forward(input), kTolerance, kTolerance)) << suffix;
    if (golden.has("logits" + suffix)) {
      EXPECT_TRUE(testing::close(logits, golden["logits" + suffix], kTolerance, kTolerance)) << suffix;
    }
    const Request tokens{.output = Output::features, .tokens = Tokens::all};
    EXPECT_TRUE(testing::close(session.run(input, tokens)[0], golden["tokens" + suffix], kTolerance, kTolerance))
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
    EXPECT_TRUE(testing::close(compiled[i], eager[i], kTolerance, kTolerance)) << i;
}

class LeftOutTokens : public ::testing::TestWithParam<kernels::Precision> {};

// Who asks for the class token alone gets what who asks for all has there, and less is computed for it.
TEST_P(LeftOutTokens, ChangeNothingOfTheTokenThatIsRead) {
  const Session session(model_of("timm_token"), {.precision = GetParam()});
  const auto& config = session.config();
  const Tensor images = Tensor::randn({3, config.in_chans, config.img_size[0], config.img_size[1]}, 5);
  const Request cls{.output = Output::features, .tokens = Tokens::cls};
  const Tensor all = session.run(images, {.output = Output::features, .tokens = Tokens::all})[0];
  EXPECT_TRUE(testing::close(session.run(images, cls)[0], all.narrow(1, 0, 1).contiguous().view({3, all.size(2)}),
                             kTolerance, kTolerance));

  const auto program = session.program(images.shape(), cls);
  double computed = 0;
  for (const Step& step : program->steps()) computed += step.flops;
  EXPECT_LT(computed, models::forward_flops(session.model(), images.shape()));
}

INSTANTIATE_TEST_SUITE_P(Precisions, LeftOutTokens,
                         ::testing::Values(kernels::Precision::fp32, kernels::Precision::half,
                                           kernels::Precision::int8),
                         [](const auto& info) { return std::string(kernels::name_of(info.param)); });

// Parts of unequal size, of which each image's results are those of the image alone.
TEST(Session, ABatchThatLeavesTheCacheRunsInPartsAndGivesTheSame) {
  const Session session(model_of("timm_token"), {.threads = 1});
  const auto& config = session.config();
  auto shape = [&](int64_t batch) { return Shape{batch, 3, config.img_size[0], config.img_size[1]}; };
  int64_t batch = 2;
  while (session.images_per_pass(shape(batch)) == batch) batch *= 2;
  while (batch % session.images_per_pass(shape(batch)) == 0) ++batch;
  const int64_t at_once = session.images_per_pass(shape(batch));
  const Tensor images = Tensor::randn(shape(batch), 1);
  for (const Request& request : {Request{}, Request{.output = Output::features, .tokens = Tokens::all}}) {
    const Tensor together = session.run(images, request)[0];
    ASSERT_EQ(together.size(0), batch);
    for (const int64_t i : {int64_t{0}, at_once - 1, at_once, batch - 1}) {
      const Tensor alone = session.run(images.narrow(0, i, 1), request)[0];
      EXPECT_TRUE(testing::close(together.narrow(0, i, 1), alone, 1e-6, 1e-6)) << i;
    }
  }
}

// With n threads each takes a batch's images in turn, and all of them those that are left over.
TEST(Session, EachThreadTakesWholeImagesAndAllTakeWhatIsLeft) {
  for (const int threads : {1, 2, 3}) {
    const Session session(model_of("timm_token"), {.threads = threads});
    const auto& config = session.config();
    for (int64_t batch = 1; batch <= 8; ++batch) {
      const Tensor images = Tensor::randn({batch, 3, config.img_size[0], config.img_size[1]}, 7);
      EXPECT_EQ(session.threads_at_work(images.shape()), batch < threads ? threads : 1);
      EXPECT_EQ(session.images_per_pass(images.shape()), batch < threads ? batch : batch / threads);
      const Tensor together = session.logits(images);
      for (int64_t i = 0; i < batch; ++i) {
        EXPECT_TRUE(testing::close(session.logits(images.narrow(0, i, 1)), together.narrow(0, i, 1), 0))
            << threads << " threads, image " << i << " of " << batch;
      }
    }
  }
}

double relative_distance(const Tensor& got, const Tensor& want) {
  double apart = 0, size = 0;
  for (int64_t i = 0; i < want.numel(); ++i) {
    const double g = got.data<float>()[i], w = want.data<float>()[i];
    apart += (g - w) * (g - w);
    size += w * w;
  }
  return std::sqrt(apart / size);
}

// An activation is off by at most half a step, in int8 1/254 of the largest, a weight by twice that where its numbers
// end at 63; in bf16 both by 2^-9 of themselves.  Sums average that out, and a few layers add up.
TEST_P(SessionOfFixture, LowerPrecisionStaysNear) {
  const auto folder = testing::model_fixture(GetParam()).parent_path();
  const Tensor input = testing::read_golden(folder / "golden.safetensors")["input"];
  const Request tokens{.output = Output::features, .tokens = Tokens::all};
  const Tensor exact = Session(model_of(GetParam(), input)).run(input, tokens)[0];
  for (const auto& [precision, limit] :
       {std::pair{kernels::Precision::half, 0.01}, std::pair{kernels::Precision::int8, 0.06}}) {
    const Session session(model_of(GetParam(), input), {.precision = precision});
    const double distance = relative_distance(session.run(input, tokens)[0], exact);
    if (precision == kernels::Precision::int8) {  // bf16 may be what the file has
      EXPECT_GT(distance, 0);
    }
    EXPECT_LT(distance, limit) << name_of(precision);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SessionOfFixture, ::testing::ValuesIn(testing::model_fixtures()),
                         [](const auto& info) { return testing::test_name(info.param); });

// A file's choice for int8 does not make its fp32 answers less exact.
TEST(Session, LayersKeptFromInt8AreOfNoMatterToFp32) {
  const Tensor input = testing::input_of("timm_token");
  const Session plain(model_of("timm_token")), kept(model_of("timm_token"), {.excluded_layers = {"blocks.0.mlp.fc1"}});
  EXPECT_TRUE(testing::close(kept.logits(input), plain.logits(input), 0));
}

Tensor images(int64_t batch, uint64_t seed) { return Tensor::randn({batch, 3, 32, 32}, seed); }

TEST(Session, EachImageOfABatchHasTheBitsThatItHasAlone) {
  const Session session(model_of("timm_token"));
  const Tensor batch = images(5, 3), together = session.logits(batch);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(testing::close(session.logits(batch.narrow(0, i, 1)), together.narrow(0, i, 1), 0)) << i;
  }
}

TEST(Session, ConcurrentRunsOfThreeBatchSizesOnOnePackingAgreeWithSingleRuns) {
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
  const Request first{.output = Output::features, .tokens = Tokens::all, .layer = 0, .normalize = false};
  Request from_end = first;
  from_end.layer = -2;  // of two blocks
  EXPECT_TRUE(testing::close(session.run(input, from_end)[0], session.run(input, first)[0], 0));
  Request beyond = first;
  beyond.layer = 2;
  EXPECT_THROW(session.run(input, beyond), Error);
}

TEST(Session, AnImageSizeThatTheModelDoesNotTakeIsAnErrorThatNamesBoth) {
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

TEST(Session, SourceMemoryIsGivenBackOncePacked) {
  const Session session(model_of("timm_token"));
  session.logits(images(1, 1));
  EXPECT_GT(session.packed_bytes(), 0u);
  EXPECT_TRUE(session.model().parameter("blocks.0.attn.qkv.weight").is_meta());
  EXPECT_FALSE(session.model().parameter("pos_embed").is_meta());
}

}  // namespace
}  // namespace vitrail::infer
