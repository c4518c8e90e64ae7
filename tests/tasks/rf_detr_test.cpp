// SPDX-License-Identifier: Apache-2.0
// RF-DETR and LW-DETR against transformers': fixtures of tools/golden/rf_detr.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/draw.h"
#include "vitrail/models/rf_detr/authors_config_internal.h"
#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/tasks/detect/rf_detr_model.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

fs::path rf_detr_folder(const std::string& name) {
  return testing::fixture("rf_detr/" + name + "/config.json").parent_path();
}

testing::Golden rf_detr_golden(const std::string& name) {
  return testing::read_golden(rf_detr_folder(name) / "golden.safetensors");
}

image::Image rf_detr_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

double rf_detr_largest(const Tensor& tensor) {
  double result = 0;
  for (const float value : std::span(tensor.data<float>(), static_cast<size_t>(tensor.numel())))
    result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

class RfDetrParity : public ::testing::TestWithParam<std::string> {};

// A level of 255 is 0.017 after normalisation.
TEST_P(RfDetrParity, PixelsEqualTheReference) {
  constexpr int64_t kStep = 3;
  const testing::Golden golden = rf_detr_golden(GetParam());
  const RfDetrModel model(rf_detr_folder(GetParam()), {});
  for (int i = 0; i < 2; ++i) {
    const Tensor got = model.network()->inputs_of(rf_detr_image(i))[0].tensor;
    const Tensor& want = golden[str("pixels_", i)];
    double worst = 0;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = 0; y < want.size(1); ++y) {
        for (int64_t x = 0; x < want.size(2); ++x) {
          const float value = got.data<float>()[(c * got.size(2) + kStep * y) * got.size(3) + kStep * x];
          const float expected = want.data<float>()[(c * want.size(1) + y) * want.size(2) + x];
          worst = std::max(worst, std::abs(static_cast<double>(value - expected)));
        }
      }
    }
    EXPECT_LT(worst, 1e-5) << i;
  }
}

TEST_P(RfDetrParity, OutputsAndObjectsEqualTheReference) {
  const testing::Golden golden = rf_detr_golden(GetParam());
  const RfDetrModel model(rf_detr_folder(GetParam()), {});
  for (int i = 0; i < 2; ++i) {
    const auto encoded = model.encode(rf_detr_image(i));
    const auto& encoding = static_cast<const QueryEncoding&>(*encoded);
    const Tensor &logits = golden[str("logits_", i)], &all = golden[str("boxes_", i)];
    EXPECT_TRUE(testing::close(encoding.logits, logits, 2e-5 * rf_detr_largest(logits)));
    EXPECT_TRUE(testing::close(encoding.boxes, all, 2e-5 * std::max(1.0, rf_detr_largest(all))));
    const Detections found = model.detections(encoding, 0.5F);
    const Tensor &scores = golden[str("scores_", i)], &labels = golden[str("labels_", i)],
                 &boxes = golden[str("found_", i)];
    ASSERT_EQ(std::ssize(found), scores.numel());
    for (size_t k = 0; k < found.size(); ++k) {
      EXPECT_EQ(static_cast<float>(found[k].index), labels.data<float>()[k]);
      EXPECT_EQ(found[k].label, model.class_names()[static_cast<size_t>(found[k].index)]);
      EXPECT_NEAR(found[k].score, scores.data<float>()[k], 2e-5);
      for (size_t side = 0; side < 4; ++side) {
        const float want = boxes.data<float>()[4 * k + side];
        EXPECT_NEAR(found[k].box[side], want, std::max(0.005F, 5e-5F * std::abs(want)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, RfDetrParity, ::testing::Values("windows", "edges", "masks", "lw"),
                         [](const auto& name) { return name.param; });

// Golden masks have every third row and column.
int64_t different_pixels(const sam::BinaryMask& mask, const Tensor& sampled, int64_t object) {
  const int64_t rows = sampled.size(1), columns = sampled.size(2);
  const uint8_t* want = sampled.data<uint8_t>() + object * rows * columns;
  int64_t count = 0;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) count += mask.row(3 * y)[3 * x] != *want++ ? 1 : 0;
  }
  return count;
}

TEST(RfDetrModel, MasksEqualTheReference) {
  const testing::Golden golden = rf_detr_golden("masks");
  const RfDetrModel model(rf_detr_folder("masks"), {});
  for (int i = 0; i < 2; ++i) {
    const auto encoding = model.encode(rf_detr_image(i));
    const Tensor& logits = golden[str("masks_", i)];
    const auto& of_queries = static_cast<const QueryEncoding&>(*encoding);
    EXPECT_TRUE(testing::close(of_queries.masks, logits, 2e-5 * rf_detr_largest(logits)));
    Detections found = model.detections(*encoding, 0.5F);
    for (const Detection& each : found) EXPECT_FALSE(each.mask);
    model.add_masks(*encoding, found);
    const Tensor& sampled = golden[str("found_masks_", i)];
    ASSERT_EQ(std::ssize(found), sampled.size(0));
    for (size_t k = 0; k < found.size(); ++k) {
      const sam::BinaryMask mask = sam::decode(found[k].mask.value());
      ASSERT_EQ(mask.width, encoding->width);
      ASSERT_EQ(mask.height, encoding->height);
      EXPECT_LE(different_pixels(mask, sampled, static_cast<int64_t>(k)), 1) << k;
    }
  }
}

TEST(Detections, MasksAreInTheJsonAndOverTheImage) {
  sam::BinaryMask mask = sam::make_mask(40, 30);
  for (int64_t x = 10; x < 30; ++x) mask.row(20)[x] = 1;
  const sam::Rle rle = sam::encode(mask);
  const Detections detections{{.label = "a", .index = 2, .box = {0, 0, 5, 5}, .mask = rle},
                              {.label = "b", .box = {0, 0, 5, 5}}};
  const json records = json::parse(detections_json("", detections))["detections"];
  EXPECT_EQ(records[0]["rle"]["size"], (json{30, 40}));
  EXPECT_EQ(sam::from_coco(records[0]["rle"]["counts"].get<std::string>(), 40, 30, ""), rle);
  EXPECT_FALSE(records[1].contains("rle"));
  const image::Image photo = image::make_image(40, 30, 3), image = detections_overlay(photo, detections);
  const image::PixelColor color = image::voc_color(3);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(image.row(20)[3 * 29 + c], (color[c] + 1) / 2);
    EXPECT_EQ(image.row(20)[3 * 30 + c], 0);
  }
}

// A query may give several objects, and there are at most as many as queries.
TEST(RfDetrModel, ObjectsAreTheBestPairsOfQueryAndClass) {
  const RfDetrModel model(rf_detr_folder("windows"), {});
  QueryEncoding encoding;
  encoding.width = 100;
  encoding.height = 50;
  encoding.logits = Tensor::full({7, 5}, -9);
  for (int64_t i = 10; i < 35; ++i) encoding.logits.data<float>()[i] = -1;
  encoding.logits.data<float>()[5 + 1] = 2;
  encoding.logits.data<float>()[5 + 3] = 1;
  encoding.boxes = Tensor::full({7, 4}, 0.5);
  std::ranges::copy(std::array{0.25F, 0.5F, 0.1F, 0.2F}, encoding.boxes.data<float>() + 4);
  EXPECT_EQ(model.detections(encoding, 0).size(), 7U);
  const Detections found = model.detections(encoding, 0.5F);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].index, 1);
  EXPECT_EQ(found[1].index, 3);
  EXPECT_NEAR(found[0].score, 1 / (1 + std::exp(-2.0)), 1e-6);
  for (const Detection& each : found) {
    const std::array<float, 4> box{20, 20, 30, 30};
    for (size_t side = 0; side < 4; ++side) EXPECT_NEAR(each.box[side], box[side], 1e-4);
  }
  EXPECT_EQ(model.detections(encoding, 0.8F).size(), 1U);
}

TEST(BoxOperations, RefineMovesCentresAndScalesSizes) {
  const Tensor boxes = Tensor::from<float>({1, 2, 4}, {0.5F, 0.25F, 0.2F, 0.4F, 0, 0, 0, 0});
  const Tensor deltas = Tensor::from<float>({1, 2, 4}, {1, -0.5F, 0, 1, 1, 1, 1, 1});
  const Tensor want = Tensor::from<float>({1, 2, 4}, {0.7F, 0.05F, 0.2F, 0.4F * std::exp(1.0F), 0, 0, 0, 0});
  EXPECT_TRUE(testing::close(models::refined_boxes(boxes, deltas), want, 1e-6));
  const Tensor images = Tensor::from<float>({2, 1, 4}, {0.5F, 0.5F, 0.1F, 0.1F, 0.2F, 0.2F, 0.4F, 0.4F});
  const Tensor moved = models::refined_boxes(images, Tensor::from<float>({1, 1, 4}, {1, 0, 0, 0}));
  EXPECT_TRUE(
      testing::close(moved, Tensor::from<float>({2, 1, 4}, {0.6F, 0.5F, 0.1F, 0.1F, 0.6F, 0.2F, 0.4F, 0.4F}), 1e-6));
  EXPECT_THROW(models::refined_boxes(boxes, images), Error);
}

TEST(BoxOperations, TheBestBoxesAreInTheOrderOfTheirLargestScores) {
  const Tensor scores = Tensor::from<float>({1, 4, 2}, {0, 3, 5, -1, 3, 2, 4, 4});
  Tensor boxes = Tensor::empty({1, 4, 4});
  for (int64_t i = 0; i < 16; ++i) boxes.data<float>()[i] = static_cast<float>(i / 4);
  const Tensor best = models::best_boxes(scores, boxes, 3);
  EXPECT_TRUE(testing::close(best, Tensor::from<float>({1, 3, 4}, {1, 1, 1, 1, 3, 3, 3, 3, 0, 0, 0, 0}), 0));
  EXPECT_THROW(models::best_boxes(scores, boxes, 5), Error);
}

TEST(BoxOperations, TheSineCodeBeginsWithY) {
  const Tensor code = models::sine_code(Tensor::from<float>({1, 1, 4}, {0.25F, 0.5F, 0, 1}), 4);
  ASSERT_EQ(code.shape(), (Shape{1, 1, 16}));
  const std::array<double, 4> sides{0.5, 0.25, 0, 1};
  for (size_t side = 0; side < 4; ++side) {
    for (size_t j = 0; j < 4; ++j) {
      const double angle = sides[side] * 2 * M_PI / std::pow(10000.0, static_cast<double>(j / 2 * 2) / 4);
      EXPECT_NEAR(code.data<float>()[4 * side + j], j % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-6);
    }
  }
}

TEST(RfDetrModel, RunsInTheOtherPrecisions) {
  // The order of proposals may differ: the objects are compared by their number alone.
  for (const kernels::Precision precision : {kernels::Precision::half, kernels::Precision::int8}) {
    const RfDetrModel model(rf_detr_folder("windows"), {.model = {.precision = precision}});
    const auto encoding = model.encode(rf_detr_image(0));
    EXPECT_EQ(static_cast<const QueryEncoding&>(*encoding).logits.shape(), (Shape{7, 5}));
    EXPECT_FALSE(model.detections(*encoding, 0.1F).empty()) << kernels::name_of(precision);
  }
}

// Weights of the authors that tell their configuration: patches and grid are those of Nano for segmentation, of Nano or
// of Base.
weights::Checkpoint weights_of_authors(int64_t patch, int64_t grid, bool masks) {
  const std::string vit = "backbone.0.encoder.encoder.", stage = "backbone.0.projector.stages.0.";
  const std::string layer = "transformer.decoder.layers.";
  std::vector<std::pair<std::string, Tensor>> tensors;
  const auto add = [&](const std::string& name, const Shape& shape) {
    tensors.emplace_back(name, Tensor::zeros(shape));
  };
  add(vit + "embeddings.cls_token", {1, 1, 64});
  add(vit + "embeddings.patch_embeddings.projection.weight", {64, 3, patch, patch});
  add(vit + "embeddings.position_embeddings", {1, 1 + grid * grid, 64});
  for (int i = 0; i < 12; ++i) add(str(vit, "encoder.layer.", i, ".norm1.weight"), {64});
  add(stage + "1.weight", {32});
  for (int i = 0; i < 3; ++i) add(str(stage, "0.m.", i, ".cv1.conv.weight"), {16, 16, 3, 3});
  for (int i = 0; i < 2; ++i) add(str(layer, i, ".norm1.weight"), {32});
  add(layer + "0.linear1.weight", {40, 32});
  add(layer + "0.cross_attn.attention_weights.weight", {2 * 3, 32});
  for (int i = 0; i < 4; ++i) add(str("transformer.enc_output.", i, ".weight"), {32, 32});
  add("refpoint_embed.weight", {4 * 7, 4});
  add("class_embed.weight", {91, 32});
  if (masks) {
    add("segmentation_head.bias", {1});
    add("segmentation_head.query_features_block.layers.0.weight", {128, 32});
  }
  const fs::path file = testing::scratch_folder() / "weights.safetensors";
  weights::write_safetensors(file, tensors);
  return weights::Checkpoint::open(file);
}

TEST(RfDetrFiles, WeightsOfTheAuthorsTellTheirConfiguration) {
  const auto config_of = [](int64_t patch, int64_t grid, bool masks) {
    const models::RfDetrTexts texts = models::rf_detr_texts_of(weights_of_authors(patch, grid, masks));
    return models::read_rf_detr_config(texts.config, "", texts.preprocessor, "", masks);
  };
  const models::RfDetrConfig nano = config_of(16, 24, false);
  EXPECT_EQ(nano.side(), 384);
  EXPECT_EQ(nano.backbone.num_windows, 2);
  EXPECT_EQ(nano.backbone.maps, (std::vector<int64_t>{3, 6, 9, 12}));
  EXPECT_EQ(nano.backbone.vit.num_heads, 1);
  EXPECT_EQ(nano.projector.hidden, 16);
  EXPECT_EQ(nano.projector.blocks, 3);
  EXPECT_EQ(nano.projector.norm_eps, 1e-6);
  EXPECT_EQ(nano.decoder.depth, 2);
  EXPECT_EQ(nano.decoder.self_heads, 1);
  EXPECT_EQ(nano.decoder.cross_heads, 2);
  EXPECT_EQ(nano.decoder.points, 3);
  EXPECT_EQ(nano.decoder.mlp_hidden, 40);
  EXPECT_EQ(nano.num_queries, 7);
  EXPECT_FALSE(nano.masks);
  ASSERT_EQ(nano.num_classes(), 91);
  EXPECT_EQ(nano.labels[1], "person");
  EXPECT_EQ(nano.labels[17], "cat");
  EXPECT_EQ(nano.labels[90], "toothbrush");
  const models::RfDetrConfig base = config_of(14, 37, false);
  EXPECT_EQ(base.side(), 560);
  EXPECT_EQ(base.backbone.num_windows, 4);
  EXPECT_EQ(base.backbone.maps, (std::vector<int64_t>{2, 5, 8, 11}));
  const models::RfDetrConfig masks = config_of(12, 26, true);
  EXPECT_EQ(masks.side(), 312);
  EXPECT_EQ(masks.backbone.num_windows, 1);
  EXPECT_EQ(masks.mask_side(), 78);
  EXPECT_EQ(masks.masks.value().mlp_hidden, 128);
}

// A folder with a fixture's weights and another configuration.
fs::path changed_rf_detr(const std::string& name, const std::string& file, const std::function<void(json&)>& change) {
  const fs::path from = rf_detr_folder(name), to = testing::scratch_folder();
  for (const char* each : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / each, to / each);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

void expect_refused(const char* name, const char* file, const char* where, const char* value,
                    const std::function<void(json&)>& change) {
  const fs::path folder = changed_rf_detr(name, file, change);
  std::string message = error_of([&] { RfDetrModel(folder, {}); });
  if (message.starts_with(folder.string())) message.erase(0, folder.string().size() + 1);
  EXPECT_ERROR(message, str(file, ": ", where), value);
}

TEST(RfDetrModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* file, const char* where, const char* value,
                         const std::function<void(json&)>& change) {
    expect_refused("windows", file, where, value, change);
  };
  const char *model = "config.json", *processor = "preprocessor_config.json";
  expect(model, "model_type", R"("rt_detr": a DETR detector, which is not supported)",
         [](json& c) { c["model_type"] = "rt_detr"; });
  expect(model, "num_feature_levels", "2", [](json& c) { c["num_feature_levels"] = 2; });
  expect(model, "d_model", "18", [](json& c) { c["d_model"] = 18; });
  expect(model, "num_queries", "0", [](json& c) { c["num_queries"] = 0; });
  expect(model, "activation_function", "\"tanh\"", [](json& c) { c["activation_function"] = "tanh"; });
  expect(model, "backbone_config: model_type", "\"dinov2\"",
         [](json& c) { c["backbone_config"]["model_type"] = "dinov2"; });
  expect(model, "backbone_config: num_windows", "65", [](json& c) { c["backbone_config"]["num_windows"] = 65; });
  expect(model, "backbone_config: out_indices", "3, 1", [](json& c) { c["backbone_config"]["out_indices"] = {3, 1}; });
  expect(processor, "image_processor_type", "\"DetrImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "DetrImageProcessor"; });
  for (const int side : {72, 8192}) {
    expect(processor, "size", str(R"({"height":)", side, R"(,"width":)", side, "}").c_str(), [&](json& c) {
      c["size"] = {{"height", side}, {"width", side}};
    });
  }
  expect(processor, "size", R"({"height":64,"width":80})", [](json& c) { c["size"]["width"] = 80; });
  expect(processor, "resample", "3", [](json& c) { c["resample"] = 3; });
  expect(processor, "pad_size", R"({"height":80,"width":80})", [](json& c) {
    c["pad_size"] = {{"height", 80}, {"width", 80}};
  });
  expect_refused("masks", model, "mask_downsample_ratio", "49", [](json& c) { c["mask_downsample_ratio"] = 49; });
}

TEST(RfDetrModel, RefusesOtherConfigurationsOfLwDetr) {
  const auto expect = [](const char* file, const char* where, const char* value,
                         const std::function<void(json&)>& change) {
    expect_refused("lw", file, where, value, change);
  };
  const char *model = "config.json", *processor = "preprocessor_config.json";
  expect(model, "projector_scale_factors", "none", [](json& c) { c.erase("projector_scale_factors"); });
  expect(model, "projector_scale_factors", "[3.0]", [](json& c) { c["projector_scale_factors"] = {3.0}; });
  expect(model, "backbone_config: model_type", "\"vitdet\"",
         [](json& c) { c["backbone_config"]["model_type"] = "vitdet"; });
  expect(model, "backbone_config: num_windows", "5", [](json& c) { c["backbone_config"]["num_windows"] = 5; });
  expect(model, "backbone_config: use_absolute_position_embeddings", "false",
         [](json& c) { c["backbone_config"]["use_absolute_position_embeddings"] = false; });
  expect(model, "backbone_config: num_attention_heads", "5",
         [](json& c) { c["backbone_config"]["num_attention_heads"] = 5; });
  expect(model, "backbone_config: pretrain_image_size", "48×64", [](json& c) {
    c["backbone_config"]["pretrain_image_size"] = {48, 64};
  });
  expect(processor, "image_processor_type", "\"RfDetrImageProcessor\"",
         [](json& c) { c["image_processor_type"] = "RfDetrImageProcessor"; });
}

// DeformableDetrImageProcessor, which LW-DETR has, finds no more either.
TEST(RfDetrModel, LwDetrFindsAtMost100Objects) {
  const RfDetrModel model(rf_detr_folder("lw"), {});
  EXPECT_EQ(model.family(), "LW-DETR");
  QueryEncoding encoding;
  encoding.logits = Tensor::full({30, 5}, 1);
  encoding.boxes = Tensor::full({30, 4}, 0.5);
  EXPECT_EQ(model.detections(encoding, 0.5F).size(), 100U);
}

}  // namespace
}  // namespace vitrail::tasks
