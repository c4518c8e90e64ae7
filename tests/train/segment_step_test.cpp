// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_step_internal.h"

#include <algorithm>
#include <cmath>

#include "tests/train/segment_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/optim/parameter_groups.h"
#include "vitrail/train/objectives/segmentation/segment_model_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kFrameSize = 32;

// The result of a batch, whose gradients are those of the loss times `share`.
BatchResult accumulate(SegmentStep& step, std::vector<DrawnSample> batch, double share = 1) {
  return step.accumulate(std::move(batch), [&](const Tensor& loss, BatchResult local) {
    local.loss = loss.item<double>();
    autograd::backward(loss, Tensor::full(loss.shape(), share, loss.dtype()));
    return local;
  });
}

class SegmentStepTest : public ::testing::Test {
 protected:
  // The loss of a batch of two images, with these biases of the predicted IoUs of the four masks.
  BatchResult result_with(const std::vector<float>& biases, bool with_empty = false) {
    PreparedSam prepared = prepare_sam(recipe_);
    prepared.model.requires_grad(true);
    const Tensor bias = prepared.model.parameter("mask_decoder.iou_prediction_head.layers.2.bias");
    for (size_t i = 0; i < biases.size(); ++i) bias.data<float>()[i] = biases[i];
    const int64_t masks = prepared.model.config().encoder.grid * 4;
    const SegmentSamples samples(sam::open_instances(instances_, "train"), {.size = kFrameSize}, recipe_.data);
    const SegmentDraw draw(recipe_, samples, kFrameSize, masks);
    SegmentStep step(recipe_, prepared.model, "");
    std::vector<DrawnSample> batch{draw.draw(0, 0, 0), draw.draw(1, 0, 1)};
    if (with_empty) {
      batch.insert(batch.begin() + 1, draw.draw(2, 0, 2));
      batch[1].prompts.clear();
    }
    return accumulate(step, std::move(batch));
  }

  const fs::path instances_ = make_instances(3, 1);
  Recipe recipe_ = parse_recipe(tiny_segment_recipe(instances_), "r.json",
                                {"segment.iou_weight=0", "segment.prompts=2", "segment.rounds=2"});
};

// The first mask is the one for prompts that leave no doubt; a click's mask is one of the others.
TEST_F(SegmentStepTest, CorrectionsFollowTheBestOfTheMasksForOnePrompt) {
  const BatchResult second = result_with({0, 0, 100, 0});
  EXPECT_EQ(result_with({1000, 0, 100, 0}).loss, second.loss);
  EXPECT_NE(result_with({0, 100, 0, 0}).loss, second.loss);
  EXPECT_NE(result_with({0, 0, 0, 100}).loss, second.loss);
}

// The kind of a click is a token of the decoder.
TEST_F(SegmentStepTest, AClickOutsideIsNoClickInside) {
  const auto loss_with = [&](int label) {
    PreparedSam prepared = prepare_sam(recipe_);
    prepared.model.requires_grad(true);
    const SegmentSamples samples(sam::open_instances(instances_, "train"), {.size = kFrameSize}, recipe_.data);
    const SegmentDraw draw(recipe_, samples, kFrameSize, prepared.model.config().encoder.grid * 4);
    std::vector<DrawnSample> batch{draw.draw(0, 0, 0)};
    for (DrawnPrompt& prompt : batch[0].prompts) {
      prompt.box.reset();
      prompt.points = {{20, 10, label}};
    }
    SegmentStep step(recipe_, prepared.model, "");
    return accumulate(step, std::move(batch)).loss;
  };
  EXPECT_EQ(loss_with(1), loss_with(1));
  EXPECT_NE(loss_with(0), loss_with(1));
}

TEST_F(SegmentStepTest, ImagesWithoutPromptsAreNotInTheMean) {
  const BatchResult both = result_with({}), with_empty = result_with({}, true);
  EXPECT_EQ(with_empty.loss, both.loss);
  EXPECT_EQ(with_empty.images, 2);
  EXPECT_EQ(with_empty.weight, 4);
}

TEST_F(SegmentStepTest, ABatchWithoutPromptsDoesNothing) {
  const PreparedSam prepared = prepare_sam(recipe_);
  SegmentStep step(recipe_, prepared.model, "");
  const BatchResult result = accumulate(step, {});
  EXPECT_EQ(result.images, 0);
  EXPECT_EQ(result.weight, 0);
  EXPECT_EQ(result.loss, 0);
}

// Gradients are those of the mean loss times the share of the step.
TEST_F(SegmentStepTest, TheShareScalesTheGradients) {
  const auto gradient = [&](double share, const char* name) {
    PreparedSam prepared = prepare_sam(recipe_);
    prepared.model.requires_grad(true);
    const SegmentSamples samples(sam::open_instances(instances_, "train"), {.size = kFrameSize}, recipe_.data);
    const SegmentDraw draw(recipe_, samples, kFrameSize, prepared.model.config().mask_size());
    SegmentStep step(recipe_, prepared.model, "");
    accumulate(step, {draw.draw(0, 0, 0)}, share);
    return autograd::grad_of(prepared.model.parameter(name)).clone();
  };
  for (const char* name :
       {"mask_decoder.mask_tokens.weight", "image_encoder.neck.0.weight", "image_encoder.pos_embed"}) {
    const Tensor whole = gradient(1, name), quarter = gradient(0.25, name);
    bool any = false;
    for (int64_t i = 0; i < whole.numel(); ++i) {
      EXPECT_NEAR(quarter.data<float>()[i], whole.data<float>()[i] / 4, 1e-6 + 1e-4 * std::abs(whole.data<float>()[i]));
      any = any || whole.data<float>()[i] != 0;
    }
    EXPECT_TRUE(any) << name;
  }
}

TEST_F(SegmentStepTest, TheResultCountsImagesAndPrompts) {
  const BatchResult result = result_with({});
  EXPECT_EQ(result.images, 2);
  EXPECT_EQ(result.weight, 4);
  segment_of(recipe_).rounds = 1;
  const BatchResult first = result_with({});
  EXPECT_NE(first.loss, result.loss) << "the loss is the mean of the rounds";
}

// The outputs of a frozen encoder are found by the key of an image, so that its pixels are not looked at again.
TEST_F(SegmentStepTest, TheOutputsOfAFrozenEncoderAreKept) {
  segment_of(recipe_).train_encoder = false;
  segment_of(recipe_).rounds = 1;
  PreparedSam prepared = prepare_sam(recipe_);
  optim::parameter_groups(prepared.model, {.frozen = prepared.frozen});
  const fs::path folder = testing::scratch_folder();
  const SegmentSamples samples(sam::open_instances(instances_, "train"), {.size = kFrameSize}, recipe_.data);
  const SegmentDraw draw(recipe_, samples, kFrameSize, prepared.model.config().mask_size());
  const auto loss = [&](const char* cache, bool black) {
    SegmentStep step(recipe_, prepared.model, folder / cache);
    std::vector<DrawnSample> batch{draw.draw(0, 0, 0), draw.draw(1, 0, 1)};
    if (black) std::fill(batch[1].image.pixels.begin(), batch[1].image.pixels.end(), uint8_t{0});
    return accumulate(step, std::move(batch)).loss;
  };
  const double computed = loss("a", false);
  EXPECT_EQ(loss("a", true), computed);
  EXPECT_NE(loss("b", true), computed);
  EXPECT_TRUE(autograd::grad_of(prepared.model.parameter("mask_decoder.mask_tokens.weight")).defined());
  EXPECT_FALSE(autograd::grad_of(prepared.model.parameter("image_encoder.pos_embed")).defined());
}

}  // namespace
}  // namespace vitrail::train
