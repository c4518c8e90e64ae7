// SPDX-License-Identifier: Apache-2.0
// Contrastive training against transformers (tools/golden/contrastive.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/base/error.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/train/objectives/contrastive/contrastive_loss_internal.h"
#include "vitrail/train/objectives/contrastive/contrastive_model_internal.h"

namespace vitrail::train {
namespace {

class ContrastiveSteps : public ::testing::TestWithParam<std::string> {
 protected:
  Tensor loss() const {
    return contrastive_loss(model_.image().forward(golden_["pixels"]), model_.text().forward(golden_[name() + ".ids"]),
                            model_.logit_scale(), model_.logit_bias(), opened_.config.text->loss);
  }
  static std::string name() { return GetParam(); }

  // The gradients of the parameters under the names of the file.
  std::vector<nn::NamedTensor> gradients() {
    std::vector<nn::NamedTensor> gradients;
    for (const nn::NamedTensor& parameter : model_.named_parameters()) {
      const Tensor gradient = autograd::grad_of(parameter.tensor);
      gradients.push_back({parameter.name, gradient.defined() ? gradient : Tensor::zeros(parameter.tensor.shape())});
    }
    return dual_file_tensors(opened_, gradients);
  }

  // Compares L2 norms, because single elements have the rounding of the largest ones.
  void expect_tensors(const std::vector<nn::NamedTensor>& got, const std::string& kind, double tolerance) {
    const std::string prefix = name() + "." + kind + ".";
    int compared = 0;
    for (const auto& [key, want] : golden_.tensors) {
      if (!key.starts_with(prefix)) continue;
      const auto found = std::ranges::find(got, key.substr(prefix.size()), &nn::NamedTensor::name);
      ASSERT_NE(found, got.end()) << key;
      EXPECT_LT(testing::relative_error(found->tensor.contiguous(), want), tolerance) << key;
      ++compared;
    }
    EXPECT_GE(compared, 11);
  }

  const testing::Golden golden_ = testing::read_golden(testing::fixture("train/contrastive.safetensors"));
  const models::OpenedModel opened_ = models::open_model(testing::fixture("models/hf_" + name()));
  mutable TrainedDual model_{models::build_model(opened_), models::build_text_tower(opened_)};
};

TEST_P(ContrastiveSteps, EqualThoseOfTransformers) {
  const auto optimizer = optim::make_optimizer({.kind = "adamw", .beta2 = 0.98, .eps = 1e-6},
                                               optim::parameter_groups(model_, {.weight_decay = 0.1}));
  for (int step = 0; step < 3; ++step) {
    const Tensor value = loss();
    EXPECT_TRUE(testing::close(value, golden_[str(name(), ".loss_", step)], 0, step == 0 ? 1e-6 : 1e-5)) << step;
    autograd::backward(value);
    if (step == 0) expect_tensors(gradients(), "grad", 1e-5);
    optimizer->step(1e-3);
    optimizer->clear_gradients();
  }
  expect_tensors(dual_file_tensors(opened_, model_.named_parameters()), "after", 1e-5);
}

// What was read is written back.
TEST_P(ContrastiveSteps, WriteTheTensorsOfTheFile) {
  const auto written = dual_file_tensors(opened_, model_.named_parameters());
  EXPECT_EQ(written.size(), opened_.checkpoint->names().size());
  for (const nn::NamedTensor& tensor : written)
    EXPECT_TRUE(testing::close(tensor.tensor, opened_.checkpoint->tensor(tensor.name), 0)) << tensor.name;
}

INSTANTIATE_TEST_SUITE_P(Models, ContrastiveSteps, ::testing::Values("clip", "siglip"),
                         [](const auto& info) { return info.param; });

TEST(ContrastiveLoss, HasTheGradientsOfItsDifferences) {
  const Tensor images = Tensor::randn({3, 4}, 1, DType::f64), texts = Tensor::randn({3, 4}, 2, DType::f64);
  const Tensor scale = Tensor::full({1}, 0.7, DType::f64), bias = Tensor::full({1}, -0.3, DType::f64);
  using models::DualLoss;
  const auto sigmoid = autograd::check_gradients(
      [](const std::vector<Tensor>& in) { return contrastive_loss(in[0], in[1], in[2], in[3], DualLoss::sigmoid); },
      {images, texts, scale, bias});
  EXPECT_LT(sigmoid.worst, 1e-7) << "element " << sigmoid.element;
  const auto softmax = autograd::check_gradients(
      [](const std::vector<Tensor>& in) { return contrastive_loss(in[0], in[1], in[2], {}, DualLoss::softmax); },
      {images, texts, scale});
  EXPECT_LT(softmax.worst, 1e-7) << "element " << softmax.element;
}

// A model of all forms of files: those of OpenCLIP have other names and transposed projections.
TEST(DualFileTensors, AreThoseOfEachFormOfFile) {
  for (const char* name : {"open_clip", "open_clip_custom_text", "open_clip_siglip", "open_clip_timm_linear",
                           "official_openai_clip", "hf_metaclip_2", "hf_siglip2"}) {
    const models::OpenedModel opened = models::open_model(testing::fixture(std::string("models/") + name));
    const TrainedDual model(models::build_model(opened), models::build_text_tower(opened));
    for (const nn::NamedTensor& tensor : dual_file_tensors(opened, model.named_parameters())) {
      EXPECT_TRUE(testing::close(tensor.tensor, opened.checkpoint->tensor(tensor.name), 0))
          << name << ": " << tensor.name;
    }
  }
}

}  // namespace
}  // namespace vitrail::train
