// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/checkpoint_params_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/finite_check_internal.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

std::shared_ptr<const Checkpoint> checkpoint_of(const std::vector<std::pair<std::string, Tensor>>& tensors) {
  const auto path = testing::scratch_folder() / "weights.safetensors";
  write_safetensors(path, tensors);
  return std::make_shared<const Checkpoint>(Checkpoint::open(path));
}

const KeyMap& native() {
  static const KeyMap map = KeyMap::builtin("timm");
  return map;
}

std::string report_of(CheckpointParams& params) {
  try {
    params.finish();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CheckpointParams, AnF32TensorIsAViewOfTheFile) {
  const auto file = checkpoint_of({{"w", Tensor::randn({4, 4}, 1)}});
  CheckpointParams params(file, native());
  EXPECT_EQ(params.get("w", {4, 4}, {}).raw(), file->tensor("w").raw());
  EXPECT_TRUE(params.has("w"));
  EXPECT_FALSE(params.has("v"));
  EXPECT_EQ(report_of(params), "");
}

TEST(CheckpointParams, OtherFloatingTypesAreConverted) {
  const Tensor w = Tensor::randn({9}, 1, DType::f64);
  CheckpointParams params(checkpoint_of({{"d", w}, {"h", w.to(DType::f16)}, {"b", w.to(DType::bf16)}}), native());
  EXPECT_EQ(params.get("d", {9}, {}).data<float>()[3], static_cast<float>(w.data<double>()[3]));
  EXPECT_EQ(params.get("h", {9}, {}).data<float>()[3], static_cast<float>(w.to(DType::f16).data<Float16>()[3]));
  EXPECT_EQ(params.get("b", {9}, {}).data<float>()[3], static_cast<float>(w.to(DType::bf16).data<BFloat16>()[3]));
  EXPECT_EQ(report_of(params), "");
}

TEST(CheckpointParams, FinishListsEveryProblemAtOnce) {
  const Tensor t = Tensor::zeros({2, 3});
  CheckpointParams params(checkpoint_of({{"wide", t}, {"extra", t}, {"counts", t.to(DType::i64)}}), native());
  EXPECT_TRUE(params.get("absent", {5}, {}).is_meta());
  EXPECT_EQ(params.get("wide", {3, 2}, {}).shape(), (Shape{3, 2}));
  params.get("counts", {2, 3}, {});
  const std::string report = report_of(params);
  for (const char* part : {"missing (1):\n    absent [5]", "misshapen (1):\n    wide: expected [3, 2], got [2, 3]",
                           "unusable (1):\n    counts: expected a floating type, got i64",
                           "not expected (1):\n    extra [2, 3]", "weights.safetensors", "key map timm"}) {
    EXPECT_NE(report.find(part), std::string::npos) << report;
  }
}

TEST(CheckpointParams, NansAndInfinitiesAreErrorsThatNameTheTensor) {
  for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      Tensor t = Tensor::zeros({70000});
      t.data<float>()[69999] = static_cast<float>(bad);
      CheckpointParams params(checkpoint_of({{"norm.weight", t.to(dtype)}}), native());
      params.get("norm.weight", {70000}, {});
      EXPECT_NE(
          report_of(params).find("norm.weight: expected finite numbers, got a NaN or an infinity at element 69999"),
          std::string::npos);
    }
  }
}

TEST(CheckpointParams, AnF64TooLargeForF32IsAnError) {
  CheckpointParams params(checkpoint_of({{"w", Tensor::full({1}, 1e300, DType::f64)}}), native());
  params.get("w", {1}, {});
  EXPECT_NE(report_of(params).find("w: expected finite"), std::string::npos);
}

TEST(FirstNonFinite, LargestFiniteNumbersAndSubnormalsPass) {
  const float largest = std::numeric_limits<float>::max(), smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(first_non_finite(Tensor::from<float>({4}, {largest, -largest, smallest, -0.0f})), std::nullopt);
  EXPECT_EQ(first_non_finite(Tensor::full({3}, 65504, DType::f16)), std::nullopt);
  EXPECT_EQ(first_non_finite(Tensor::full({3}, 65520, DType::f16)), 0);
  EXPECT_EQ(first_non_finite(Tensor::full({3}, -0x1.FEp127, DType::bf16)), std::nullopt);
  EXPECT_EQ(first_non_finite(Tensor::full({3}, 0x1p-133, DType::bf16)), std::nullopt);
  EXPECT_EQ(first_non_finite(Tensor::full({3}, std::numeric_limits<double>::max(), DType::f64)), std::nullopt);
}

// Also behind the first chunk that is searched.
TEST(FirstNonFinite, IsFoundAtEveryPlaceInEveryType) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const int64_t at : {0, 1, 65535, 65536, 69999}) {
      Tensor values = Tensor::full({70000}, 3);
      EXPECT_EQ(first_non_finite(values.to(dtype)), std::nullopt);
      for (const float bad : {infinity, -infinity, std::nanf("")}) {
        values.data<float>()[at] = bad;
        EXPECT_EQ(first_non_finite(values.to(dtype)), at) << bad;
      }
      if (at + 1 < 70000) values.data<float>()[at + 1] = infinity;
      EXPECT_EQ(first_non_finite(values.to(dtype)), at) << "the first";
    }
  }
  EXPECT_EQ(first_non_finite(Tensor::zeros({0})), std::nullopt);
  EXPECT_EQ(first_non_finite(Tensor::full({4}, -1, DType::i64)), std::nullopt);
}

TEST(CheckpointParams, DeitTinyIsNativeAndComplete) {
  VITRAIL_NEED_ASSETS(assets);
  const auto file = std::make_shared<const Checkpoint>(
      Checkpoint::open(assets / "weights/deit_tiny_patch16_224.fb_in1k/model.safetensors"));
  const KeyMap map = KeyMap::detect(file->names());
  EXPECT_EQ(map.name(), "timm");
  CheckpointParams params(file, map);
  const MappedTensors mapped(*file, map, {});
  for (const auto& [key, tensor] : mapped.all()) EXPECT_FALSE(params.get(key, tensor.shape, {}).is_meta());
  EXPECT_EQ(report_of(params), "");
}

TEST(CheckpointParams, WeightsIn8BitsAreMultipliedByTheirScales) {
  const Tensor numbers = Tensor::from<float>({2, 3}, {127, -3, 0, 1, 127, -127}).to(DType::i8);
  CheckpointParams params(checkpoint_of({{"w", numbers}, {int8_scale_name("w"), Tensor::from<float>({2}, {0.5, 2})}}),
                          native());
  const Tensor want = Tensor::from<float>({2, 3}, {63.5, -1.5, 0, 2, 254, -254});
  EXPECT_TRUE(testing::close(params.get("w", {2, 3}, {}), want, 0));
  EXPECT_EQ(report_of(params), "");
}

TEST(CheckpointParams, WeightsIn8BitsWithoutScalesOrWithOthersAreUnusable) {
  const Tensor numbers = Tensor::zeros({2, 3}, DType::i8);
  CheckpointParams without(checkpoint_of({{"w", numbers}}), native());
  without.get("w", {2, 3}, {});
  EXPECT_TRUE(testing::contains(report_of(without), "expected a floating type, got i8")) << report_of(without);
  CheckpointParams others(checkpoint_of({{"w", numbers}, {int8_scale_name("w"), Tensor::zeros({3})}}), native());
  others.get("w", {2, 3}, {});
  EXPECT_TRUE(testing::contains(report_of(others), "scales f32 [out]")) << report_of(others);
}

// Files of vitrail 0.1 call the correction NAME_rest.
TEST(CheckpointParams, ACorrectionIsReadUnderItsNewAndItsOldName) {
  const Tensor values = Tensor::from<float>({2, 3}, {127, -3, 0, 1, 127, -127}).to(DType::i8),
               error = Tensor::from<float>({2, 3}, {1, 2, 3, -4, 5, 127}).to(DType::i8);
  const Tensor scales = Tensor::from<float>({2}, {0.5, 2}), error_scales = Tensor::from<float>({2}, {0.25, 0.125});
  const Tensor want = Tensor::from<float>({2, 3}, {63.75, -1, 0.75, 1.5, 254.625, -238.125});
  for (const std::string& name : {int8_correction_name("w"), old_int8_correction_name("w")}) {
    const auto checkpoint = checkpoint_of(
        {{"w", values}, {int8_scale_name("w"), scales}, {name, error}, {int8_scale_name(name), error_scales}});
    CheckpointParams dense(checkpoint, native());
    EXPECT_TRUE(testing::close(dense.get("w", {2, 3}, {}), want, 0)) << name;
    EXPECT_EQ(report_of(dense), "");
    CheckpointParams kept(checkpoint, native(), {}, DType::f32, Int8Weights::keep);
    const Tensor weight = kept.get("w", {2, 3}, {});
    ASSERT_NE(weight.quantized(), nullptr);
    EXPECT_TRUE(testing::close(weight.quantized()->values, values, 0));
    EXPECT_TRUE(testing::close(weight.quantized()->correction->values, error, 0));
    EXPECT_TRUE(testing::close(weight.to(DType::f32), want, 0));
    EXPECT_EQ(report_of(kept), "");
    CheckpointParams shapes(checkpoint, native(), {}, DType::f32, Int8Weights::keep, CheckpointParams::Content::shapes);
    EXPECT_TRUE(shapes.get("w", {2, 3}, {}).is_meta());
    EXPECT_EQ(report_of(shapes), "") << "the parts of the weight are expected";
  }
}

TEST(CheckpointParams, AScaleThatIsNotFiniteIsUnusable) {
  const Tensor values = Tensor::zeros({2, 3}, DType::i8), scales = Tensor::from<float>({2}, {1, std::nanf("")});
  CheckpointParams params(checkpoint_of({{"w", values}, {int8_scale_name("w"), scales}}), native(), {}, DType::f32,
                          Int8Weights::keep);
  params.get("w", {2, 3}, {});
  EXPECT_TRUE(testing::contains(report_of(params), "at element 3")) << report_of(params);
}

TEST(CheckpointParams, AScaleOfTheCorrectionThatIsNotFiniteIsUnusable) {
  const Tensor values = Tensor::zeros({2, 3}, DType::i8), scales = Tensor::full({2}, 1),
               bad = Tensor::from<float>({2}, {1, std::numeric_limits<float>::infinity()});
  const std::string correction = int8_correction_name("w");
  for (const Int8Weights kind : {Int8Weights::keep, Int8Weights::dequantize}) {
    CheckpointParams params(
        checkpoint_of(
            {{"w", values}, {int8_scale_name("w"), scales}, {correction, values}, {int8_scale_name(correction), bad}}),
        native(), {}, DType::f32, kind);
    params.get("w", {2, 3}, {});
    EXPECT_TRUE(testing::contains(report_of(params), "at element 3")) << report_of(params);
  }
}

TEST(CheckpointParams, ACorrectionWithoutScalesOrOfAnotherShapeIsUnusable) {
  const Tensor numbers = Tensor::zeros({2, 3}, DType::i8), scales = Tensor::zeros({2});
  const std::string correction = int8_correction_name("w");
  CheckpointParams without(checkpoint_of({{"w", numbers}, {int8_scale_name("w"), scales}, {correction, numbers}}),
                           native());
  without.get("w", {2, 3}, {});
  EXPECT_TRUE(testing::contains(report_of(without), "w_correction_scale")) << report_of(without);
  CheckpointParams other(checkpoint_of({{"w", numbers},
                                        {int8_scale_name("w"), scales},
                                        {correction, Tensor::zeros({2, 2}, DType::i8)},
                                        {int8_scale_name(correction), scales}}),
                         native());
  other.get("w", {2, 3}, {});
  EXPECT_TRUE(testing::contains(report_of(other), "[2, 3]")) << report_of(other);
}

}  // namespace
}  // namespace vitrail::weights
