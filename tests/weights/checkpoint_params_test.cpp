// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/checkpoint_params_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/torch_save.h"
#include "tests/weights/support.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/finite_check_internal.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace {

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

TEST(CheckpointParams, TheReportHasASectionForEachKindOfProblem) {
  const auto file = checkpoint_of({{"a", Tensor::zeros({2, 3})},
                                   {"b", Tensor::zeros({4, 3})},
                                   {"c", Tensor::zeros({2}, DType::i64)},
                                   {"d", Tensor::full({3}, std::nan(""))},
                                   {"q", Tensor::zeros({1})},
                                   {"e", Tensor::zeros({5, 1})},
                                   {"f", Tensor::zeros({6})}});
  CheckpointParams params(file, map_of(R"({"from": "b", "to": "of_b"}, {"from": "q", "to": "qk", "part": [1, 2]},
                                          {"from": "e", "to": "split", "part": [0, 2]}, {"from": "f", "to": "of_f"})"));
  EXPECT_EQ(params.get("a", {3, 2}, {}).shape(), (Shape{3, 2}));
  params.get("of_b", {4, 2}, {});
  params.get("c", {2}, {});
  params.get("d", {3}, {});
  params.get("qk", {2}, {});
  params.get("gone", {7, 1}, {});
  params.get("away", {9}, {});
  EXPECT_EQ(report_of(params),
            file->path() +
                ": the tensors do not fit the model (key map own):"
                "\n  missing (2):\n    gone [7, 1]\n    away [9]"
                "\n  misshapen (2):\n    a: expected [3, 2], got [2, 3]\n    of_b (from b): expected "
                "[4, 2], got [4, 3]"
                "\n  unusable (3):\n    c: expected a floating type, got i64\n    d: expected finite "
                "numbers, got a NaN or an infinity at element 0\n    qk (from q): part 1 of 2 is missing"
                "\n  not expected (2):\n    of_f (from f) [6]\n    split (from e)");
}

TEST(CheckpointParams, ASourceOfSeveralTensorsNamesTheFirst) {
  const auto file = checkpoint_of({{"k", Tensor::zeros({1, 2})}, {"q", Tensor::zeros({3, 2})}});
  CheckpointParams params(
      file, map_of(R"({"from": "q", "to": "qk", "part": [0, 2]}, {"from": "k", "to": "qk", "part": [1, 2]})"));
  params.get("qk", {5, 2}, {});
  EXPECT_TRUE(
      testing::contains(report_of(params), "misshapen (1):\n    qk (from q and others): expected [5, 2], got [4, 2]"));
}

TEST(CheckpointParams, WhatIsBesideTheModelIsAWarning) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const char* name : {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight"})
    tensors.emplace_back(std::string("net.") + name, Tensor::zeros({1}));
  const auto warnings_of = [&](const std::vector<std::string>& others) {
    const auto path = testing::scratch_folder() / "weights.safetensors";
    auto all = tensors;
    for (const std::string& name : others) all.emplace_back(name, Tensor::zeros({2}));
    write_safetensors(path, all);
    Checkpoint checkpoint = Checkpoint::open(path);
    checkpoint.strip_model_prefix();
    CheckpointParams params(std::make_shared<const Checkpoint>(std::move(checkpoint)), native());
    for (const auto& [name, tensor] : tensors) params.get(name.substr(4), {1}, {});
    const testing::Warnings warnings;
    EXPECT_EQ(report_of(params), "");
    std::vector<std::string> texts;
    for (const std::string& warning : warnings.messages) texts.push_back(warning.substr(path.string().size()));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(warnings_of({}), Texts{});
  EXPECT_EQ(warnings_of({"loss"}), Texts{": left out 1 tensor beside the model's: \"loss\""});
  EXPECT_EQ(warnings_of({"loss", "a", "d", "c", "b"}),
            Texts{": left out 5 tensors beside the model's: \"a\", \"b\", \"c\", \"d\", …"});
}

TEST(CheckpointParams, ValuesHaveTheWantedType) {
  const Tensor w = Tensor::randn({4, 2}, 3, DType::f64);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    CheckpointParams params(checkpoint_of({{"w", w}}), native(), {}, dtype);
    const Tensor got = params.get("w", {4, 2}, {});
    EXPECT_EQ(got.dtype(), dtype);
    EXPECT_TRUE(testing::close(got, w.to(dtype), 0));
    EXPECT_EQ(params.get("gone", {3}, {}).dtype(), dtype) << "a placeholder";
  }
}

TEST(CheckpointParams, OnlyShapesCanBeChecked) {
  const auto file = checkpoint_of({{"w", Tensor::full({2, 3}, std::nan(""))},
                                   {"v", Tensor::zeros({2, 3}, DType::i8)},
                                   {"v_scale", Tensor::zeros({7})},
                                   {"v_correction", Tensor::zeros({2, 3}, DType::i8)},
                                   {"v_correction_scale", Tensor::zeros({2})},
                                   {"u", Tensor::zeros({1})},
                                   {"u_rest", Tensor::zeros({1}, DType::i8)},
                                   {"u_rest_scale", Tensor::zeros({1})}});
  CheckpointParams params(file, native(), {}, DType::f32, Int8Weights::dequantize, CheckpointParams::Content::shapes);
  for (const char* name : {"w", "v"}) {
    const Tensor got = params.get(name, {2, 3}, {});
    EXPECT_TRUE(got.is_meta());
    EXPECT_EQ(got.shape(), (Shape{2, 3}));
  }
  params.get("u", {1}, {});
  EXPECT_EQ(report_of(params), "");
  params.get("w", {3, 2}, {});
  params.get("x", {1}, {});
  const std::string report = report_of(params);
  EXPECT_TRUE(testing::contains(report, "missing (1):\n    x [1]")) << report;
  EXPECT_TRUE(testing::contains(report, "misshapen (1):\n    w: expected [3, 2], got [2, 3]")) << report;
}

TEST(CheckpointParams, OnlyWeightsOfInt8HaveScales) {
  const auto file = checkpoint_of({{"w", Tensor::full({2, 3}, 4)}, {"w_scale", Tensor::full({2}, 3)}});
  CheckpointParams params(file, native());
  EXPECT_EQ(params.get("w", {2, 3}, {}).data<float>()[5], 4);
  EXPECT_TRUE(testing::contains(report_of(params), "not expected (1):\n    w_scale [2]"));
}

TEST(CheckpointParams, ProblemsOfInt8WeightsNameThem) {
  const Tensor values = Tensor::full({2, 3}, 1, DType::i8), scales = Tensor::full({2}, 1);
  const auto unusable = [&](std::vector<std::pair<std::string, Tensor>> others,
                            Int8Weights kind = Int8Weights::dequantize) {
    others.emplace_back("w", values);
    CheckpointParams params(checkpoint_of(others), native(), {}, DType::f32, kind);
    EXPECT_TRUE(params.get("w", {2, 3}, {}).is_meta());
    const std::string report = report_of(params), begin = "unusable (1):\n    w: ";
    const size_t at = report.find(begin), end = report.find('\n', at + begin.size());
    return at == report.npos ? report : report.substr(at + begin.size(), end - at - begin.size());
  };
  EXPECT_EQ(unusable({}), "expected a floating type, got i8");
  EXPECT_ERROR(unusable({{"w_scale", scales}, {"w_correction", values}}), "w_correction", "neither or one");
  EXPECT_ERROR(unusable({{"w_scale", scales}, {"w_correction", Tensor::zeros({2, 3})}, {"w_correction_scale", scales}}),
               "w_correction", "neither or one");
  EXPECT_ERROR(
      unusable(
          {{"w_scale", scales}, {"w_rest", Tensor::zeros({3, 2}, DType::i8)}, {"w_rest_scale", Tensor::zeros({3})}}),
      "w_rest", "[3, 2]");
  const Tensor nan_first = Tensor::from<float>({2}, {std::nanf(""), 1}),
               nan_last = Tensor::from<float>({2}, {1, std::nanf("")});
  for (const Int8Weights kind : {Int8Weights::dequantize, Int8Weights::keep}) {
    EXPECT_EQ(unusable({{"w_scale", nan_first}}, kind),
              "expected finite numbers, got a NaN or an infinity at element 0");
    EXPECT_EQ(unusable({{"w_scale", nan_last}}, kind),
              "expected finite numbers, got a NaN or an infinity at element 3");
  }
}

TEST(FirstNonFinite, IntegersHaveNone) {
  for (const DType dtype : {DType::i64, DType::i32, DType::i8, DType::u8, DType::boolean})
    EXPECT_EQ(first_non_finite(Tensor::full({9}, -1, dtype)), std::nullopt);
}

}  // namespace
}  // namespace vitrail::weights
