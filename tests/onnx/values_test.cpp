// SPDX-License-Identifier: Apache-2.0
// What exported graphs compute, by an interpreter of their operators, against the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/support/onnx_run.h"
#include "tests/support/paths.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/models/text_tower.h"
#include "vitrail/onnx/export.h"
#include "vitrail/onnx/export_sam.h"
#include "vitrail/onnx/export_text.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::onnx {
namespace {

using testing::OnnxArray;
using testing::OnnxFile;

OnnxArray array_of_tensor(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f32).contiguous();
  return {{tensor.shape().begin(), tensor.shape().end()},
          {values.data<float>(), values.data<float>() + values.numel()},
          tensor.dtype() == DType::i64};
}
Tensor tensor_of(const OnnxArray& array) {
  return Tensor::from<float>(Shape(std::span<const int64_t>(array.shape)),
                             std::vector<float>(array.values.begin(), array.values.end()));
}

class ImageValues : public ::testing::TestWithParam<const char*> {};

// Also with another opset, with weights beside the graph, and for any number of images.
TEST_P(ImageValues, AreTheModels) {
  const std::string name = GetParam();
  const Tensor images = testing::input_of(name);
  const models::OpenedModel opened = models::open_model(testing::model_fixture(name), testing::options_for(images));
  const models::VisionTransformer model = models::build_model(opened);
  const auto path = testing::scratch_folder() / "a.onnx";
  const Tensor want = model.forward(images);
  for (const OnnxOptions& options :
       {OnnxOptions{}, OnnxOptions{.opset = 18, .dynamic_batch = true}, OnnxOptions{.inline_bytes = 100}}) {
    export_onnx(model, opened.config, path, options);
    const OnnxFile file = testing::read_onnx(path);
    const int64_t count = options.dynamic_batch ? images.size(0) : 1;
    auto outputs = testing::run_onnx(file, {{"images", array_of_tensor(images.narrow(0, 0, count))}});
    const Tensor got = tensor_of(outputs.at(outputs.contains("logits") ? "logits" : "features"));
    EXPECT_TRUE(testing::close(got, want.narrow(0, 0, count), 2e-4, 2e-4)) << options.opset;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ImageValues,
                         ::testing::Values("timm_token", "timm_avg", "timm_distilled", "timm_map", "timm_swiglu",
                                           "timm_beit", "timm_dinov3", "timm_rope_mixed", "timm_eva02_base",
                                           "timm_aimv2", "timm_act_gelu_tanh", "timm_act_quick_gelu", "timm_act_relu",
                                           "timm_act_silu", "timm_pre_logits_tanh", "timm_reg_tokens",
                                           "timm_layer_scale", "timm_allow_remainder", "timm_non_square", "hf_clip",
                                           "hf_siglip"),
                         [](const auto& info) { return testing::test_name(info.param); });

// Pixels are rescaled and normalised channel by channel.
TEST(OnnxValues, OfPixelsAreThoseOfNormalisedImages) {
  models::OpenedModel opened = models::open_model(testing::model_fixture("timm_token"));
  opened.config.preprocessing.mean = std::vector<double>{0.1, 0.2, 0.3};
  opened.config.preprocessing.std = std::vector<double>{0.4, 0.5, 0.7};
  const models::VisionTransformer model = models::build_model(opened);
  const auto path = testing::scratch_folder() / "a.onnx";
  export_onnx(model, opened.config, path, {.input = Input::uint8});
  OnnxArray pixels{{1, 32, 32, 3}, {}};
  Tensor images = Tensor::empty({1, 3, 32, 32});
  for (int64_t i = 0; i < 32 * 32; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      const auto pixel = static_cast<double>((i * 7 + c * 50) % 256);
      pixels.values.push_back(pixel);
      const auto at = static_cast<size_t>(c);
      images.data<float>()[c * 32 * 32 + i] = static_cast<float>(
          (pixel / 255 - (*opened.config.preprocessing.mean)[at]) / (*opened.config.preprocessing.std)[at]);
    }
  }
  auto outputs = testing::run_onnx(testing::read_onnx(path), {{"images", pixels}});
  EXPECT_TRUE(testing::close(tensor_of(outputs.at("logits")), model.forward(images), 1e-4, 1e-4));
  // A processor may have another factor than 1/255.
  opened.config.preprocessing.rule = models::ResizeRule::huggingface;
  opened.config.preprocessing.rescale_factor = 1.0 / 128;
  export_onnx(model, opened.config, path, {.input = Input::uint8});
  for (int64_t i = 0; i < 32 * 32; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      const auto at = static_cast<size_t>(c);
      images.data<float>()[c * 32 * 32 + i] = static_cast<float>(
          (pixels.values[static_cast<size_t>(3 * i + c)] / 128 - (*opened.config.preprocessing.mean)[at]) /
          (*opened.config.preprocessing.std)[at]);
    }
  }
  outputs = testing::run_onnx(testing::read_onnx(path), {{"images", pixels}});
  EXPECT_TRUE(testing::close(tensor_of(outputs.at("logits")), model.forward(images), 1e-4, 1e-4));
}

// At the limit everything stays in the graph.
TEST(OnnxValues, WeightsOfTheLimitStayInTheGraph) {
  const models::OpenedModel opened = models::open_model(testing::model_fixture("timm_token"));
  const models::VisionTransformer model = models::build_model(opened);
  const std::filesystem::path path = testing::scratch_folder() / "a.onnx", data = path.string() + ".data";
  export_onnx(model, opened.config, path);
  uint64_t bytes = 0;
  for (const auto& [name, constant] : testing::read_onnx(path).constants)
    bytes += constant.values.size() * (constant.type == 7 ? 8 : 4);
  export_onnx(model, opened.config, path, {.inline_bytes = bytes});
  EXPECT_FALSE(std::filesystem::exists(data));
  export_onnx(model, opened.config, path, {.inline_bytes = bytes - 1});
  EXPECT_TRUE(std::filesystem::exists(data));
}

TEST(OnnxValues, OfTextsAreTheTowers) {
  for (const char* name : {"hf_clip", "hf_clip_old_eos", "hf_siglip", "open_clip_coca"}) {
    const models::TextTower tower = models::build_text_tower(models::open_model(testing::model_fixture(name)));
    const models::TextTransformerConfig& config = tower.model.config();
    // Three texts, whose end is at the last place, in the middle and behind the first token.
    const Tensor ids = Tensor::full({3, config.context_length}, static_cast<double>(config.pad_token_id), DType::i64);
    const int64_t end = config.pool == models::TextPool::first_eos ? config.eos_token_id : config.vocab_size - 1;
    for (int64_t text = 0; text < 3; ++text) {
      const int64_t last =
          std::array{config.context_length - 1, config.context_length / 2, int64_t{1}}[static_cast<size_t>(text)];
      int64_t* row = ids.data<int64_t>() + text * config.context_length;
      for (int64_t i = 0; i < last; ++i) row[i] = 3 + (i * 5 + text) % (std::min(end, config.vocab_size) - 4);
      row[last] = end;
    }
    const Tensor want = tower.model.forward(ids);
    const auto path = testing::scratch_folder() / "clip.onnx";
    for (const bool dynamic : {false, true}) {
      export_text_onnx(tower, path, {.dynamic_batch = dynamic});
      const int64_t count = dynamic ? ids.size(0) : 1;
      auto outputs = testing::run_onnx(testing::read_onnx(text_onnx_file(path)),
                                       {{"input_ids", array_of_tensor(ids.narrow(0, 0, count))}});
      EXPECT_TRUE(testing::close(tensor_of(outputs.at("text_embeds")), want.narrow(0, 0, count), 1e-4, 1e-4)) << name;
    }
  }
}

// The encoder and the decoder, for each prompt of the fixture, against the predictor.
class SamValues : public ::testing::TestWithParam<const char*> {};

TEST_P(SamValues, AreThePredictors) {
  const testing::SamFixture fixture = testing::sam_fixture(GetParam());
  const models::Sam sam = models::load_sam(fixture.model);
  const sam::Predictor predictor(fixture.model);
  const sam::ImageEmbedding embedding = predictor.embed(fixture.image);
  const int64_t size = sam.config().encoder.image_size(), side = sam.config().mask_size();
  const double scale = static_cast<double>(size) / static_cast<double>(std::max(embedding.width, embedding.height));
  const auto path = testing::scratch_folder() / "sam.onnx";
  export_sam_onnx(sam, path, {.file = {.input = Input::uint8}});
  const SamOnnxFiles files = sam_onnx_files(path);
  const OnnxFile decoder = testing::read_onnx(files.decoder);
  const auto rounded = [&](int64_t length) { return static_cast<int64_t>(static_cast<double>(length) * scale + 0.5); };
  const image::Image resized =
      image::resize(fixture.image, rounded(embedding.width), rounded(embedding.height), image::Filter::bilinear);
  const OnnxArray pixels{{1, resized.height, resized.width, 3}, {resized.pixels.begin(), resized.pixels.end()}};
  auto encoded = testing::run_onnx(testing::read_onnx(files.encoder), {{"image", pixels}});
  for (const sam::Prompt& prompt : fixture.prompts) {
    OnnxArray points{{1, 0, 2}, {}}, labels{{1, 0}, {}};
    const auto add = [&](double x, double y, double label) {
      const double along = static_cast<double>(resized.width) / static_cast<double>(embedding.width);
      const double down = static_cast<double>(resized.height) / static_cast<double>(embedding.height);
      points.values.insert(points.values.end(), {x * along, y * down});
      labels.values.push_back(label);
      ++points.shape[1];
      ++labels.shape[1];
    };
    for (const sam::Point& point : prompt.points) add(point.x, point.y, point.label);
    if (prompt.box) {
      add(prompt.box->x0, prompt.box->y0, 2);
      add(prompt.box->x1, prompt.box->y1, 3);
    } else if (!prompt.points.empty()) {
      add(0, 0, -1);
    }
    const bool masked = prompt.mask_logits.defined();
    OnnxArray mask = array_of_tensor(masked ? prompt.mask_logits : Tensor::zeros({side, side}));
    mask.shape = {1, 1, side, side};
    std::map<std::string, OnnxArray> inputs = encoded;
    inputs["point_coords"] = points;
    inputs["point_labels"] = labels;
    inputs["mask_input"] = mask;
    inputs["has_mask_input"] = {{1}, {masked ? 1.0 : 0.0}};
    inputs["orig_im_size"] = {{2}, {static_cast<double>(embedding.height), static_cast<double>(embedding.width)}};
    auto outputs = testing::run_onnx(decoder, inputs);
    sam::Prompt three = prompt, one = prompt;
    three.multimask = true;
    one.multimask = false;
    const sam::Masks many = predictor.predict(embedding, three), single = predictor.predict(embedding, one);
    const Tensor low = tensor_of(outputs.at("low_res_masks")).select(0, 0),
                 full = tensor_of(outputs.at("masks")).select(0, 0);
    const double tolerance = testing::kSamTolerance * testing::largest(many.logits) + 1e-3;
    EXPECT_TRUE(testing::close(low.narrow(0, 0, 1), single.logits, tolerance));
    EXPECT_TRUE(testing::close(low.narrow(0, 1, 3), many.logits, tolerance));
    for (int64_t m = 0; m < 3; ++m) {
      EXPECT_TRUE(testing::close(full.select(0, m + 1),
                                 predictor.image_logits(many.logits.select(0, m), embedding.width, embedding.height),
                                 tolerance));
      EXPECT_NEAR(outputs.at("iou_predictions").values[static_cast<size_t>(m + 1)], many.iou[static_cast<size_t>(m)],
                  1e-3);
    }
    EXPECT_NEAR(outputs.at("iou_predictions").values[0], single.iou[0], 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SamValues, ::testing::Values("padded_windows", "mobile", "high_quality"),
                         [](const auto& info) { return std::string(info.param); });

// The padding is cut off where the longest side of the input and the image's shape say, rounded to the nearest pixel.
TEST(SamMasks, OfAnyImageShapeAreThePredictors) {
  const testing::SamFixture fixture = testing::sam_fixture("padded_windows");
  const models::Sam sam = models::load_sam(fixture.model);
  const sam::Predictor predictor(fixture.model);
  const auto path = testing::scratch_folder() / "sam.onnx";
  export_sam_onnx(sam, path);
  const OnnxFile decoder = testing::read_onnx(sam_onnx_files(path).decoder);
  const models::SamConfig& config = sam.config();
  const int64_t grid = config.encoder.grid, side = config.mask_size();
  const OnnxArray embedding = array_of_tensor(Tensor::randn({1, config.decoder.dim, grid, grid}, 3));
  // On an input of 80 pixels the shorter sides are 60, 60.8, 61.6, 52 and 80 pixels, and 48.4 of a large image.
  for (const auto& [width, height] : {std::pair{40, 30}, {25, 19}, {77, 100}, {100, 65}, {31, 31}, {200, 121}}) {
    auto outputs = testing::run_onnx(
        decoder, {{"image_embeddings", embedding},
                  {"point_coords", {{1, 2, 2}, {20, 30, 0, 0}}},
                  {"point_labels", {{1, 2}, {1, -1}}},
                  {"mask_input", array_of_tensor(Tensor::zeros({1, 1, side, side}))},
                  {"has_mask_input", {{1}, {0.0}}},
                  {"orig_im_size", {{2}, {static_cast<double>(height), static_cast<double>(width)}}}});
    const Tensor low = tensor_of(outputs.at("low_res_masks")).select(0, 0),
                 full = tensor_of(outputs.at("masks")).select(0, 0);
    for (int64_t m = 0; m < low.size(0); ++m) {
      const Tensor want = predictor.image_logits(low.select(0, m).contiguous(), width, height);
      // Weights of two interpolations, each of few products of f32.
      EXPECT_TRUE(testing::close(full.select(0, m), want, 1e-4 * testing::largest(low))) << width << "x" << height;
    }
  }
}

// With less than three points, padding included, that of the best score of the three, else the one for a single mask.
TEST(SamSingleMask, IsChosenByTheNumberOfPoints) {
  const testing::SamFixture fixture = testing::sam_fixture("padded_windows");
  const models::Sam sam = models::load_sam(fixture.model);
  const auto path = testing::scratch_folder() / "sam.onnx";
  std::array<OnnxFile, 2> files;
  for (const bool single : {false, true}) {
    export_sam_onnx(sam, path, {.single_mask = single});
    files[single ? 1 : 0] = testing::read_onnx(sam_onnx_files(path).decoder);
  }
  const models::SamConfig& config = sam.config();
  const int64_t grid = config.encoder.grid, side = config.mask_size();
  const OnnxArray embedding = array_of_tensor(Tensor::randn({1, config.decoder.dim, grid, grid}, 3));
  for (int64_t count = 1; count <= 4; ++count) {
    OnnxArray points{{1, count, 2}, {}}, labels{{1, count}, {}};
    for (int64_t i = 0; i < count; ++i) {
      points.values.insert(points.values.end(), {static_cast<double>(10 + 9 * i), static_cast<double>(60 - 11 * i)});
      labels.values.push_back(i + 1 == count ? -1 : 1);
    }
    const std::map<std::string, OnnxArray> inputs{
        {"image_embeddings", embedding},  {"point_coords", points},
        {"point_labels", labels},         {"mask_input", array_of_tensor(Tensor::zeros({1, 1, side, side}))},
        {"has_mask_input", {{1}, {0.0}}}, {"orig_im_size", {{2}, {40.0, 30.0}}}};
    auto all = testing::run_onnx(files[0], inputs), one = testing::run_onnx(files[1], inputs);
    const std::vector<double>& iou = all.at("iou_predictions").values;
    const auto best = count < 3 ? std::ranges::max_element(iou.begin() + 1, iou.end()) - iou.begin() : 0;
    EXPECT_EQ(one.at("iou_predictions").values, std::vector<double>{iou[static_cast<size_t>(best)]}) << count;
    EXPECT_TRUE(testing::close(tensor_of(one.at("low_res_masks")).select(0, 0).select(0, 0),
                               tensor_of(all.at("low_res_masks")).select(0, 0).select(0, best), 0))
        << count;
  }
}

}  // namespace
}  // namespace vitrail::onnx
