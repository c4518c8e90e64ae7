// SPDX-License-Identifier: Apache-2.0
// CLIPSeg against transformers': fixtures of tools/golden/clipseg.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/read_file.h"
#include "vitrail/ops/layout.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/tasks/clipseg/clipseg_model.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

constexpr int64_t kTextStep = 3;  // golden maps have every third row and column
const std::vector<std::string> kTexts{"a photo of a cat", "two dogs playing in the snow", "grass"};

fs::path clipseg_folder(const std::string& name) {
  return testing::fixture("clipseg/" + name + "/config.json").parent_path();
}

image::Image clipseg_photo(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

// Every third row and column of maps [texts, height, width].
Tensor thinned_maps(const Tensor& maps) {
  const int64_t height = maps.size(1), width = maps.size(2);
  std::vector<float> values;
  for (int64_t t = 0; t < maps.size(0); ++t) {
    for (int64_t y = 0; y < height; y += kTextStep) {
      for (int64_t x = 0; x < width; x += kTextStep) values.push_back(maps.data<float>()[(t * height + y) * width + x]);
    }
  }
  const Tensor result =
      Tensor::empty({maps.size(0), (height + kTextStep - 1) / kTextStep, (width + kTextStep - 1) / kTextStep});
  std::ranges::copy(values, result.data<float>());
  return result;
}

float largest_logit(const Tensor& tensor) {
  float result = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) result = std::max(result, std::abs(tensor.data<float>()[i]));
  return result;
}

struct RanTexts {
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<Request> request;
  std::vector<Item> items;
};

RanTexts run_texts(const std::string& name, const Parameters& given, const std::vector<std::string>& texts = kTexts) {
  RanTexts ran{open_model(clipseg_folder(name)), {}, {}};
  RequestOptions options;
  for (const std::string& text : texts) options.add("text", text);
  options.add(given);
  ran.request = find_task("segment", *ran.model)->request(*ran.model, options, {.model = "m", .render = true});
  options.require_all_taken();
  for (int i = 0; i < 2; ++i) ran.items.push_back({.name = str("image ", i), .photo = clipseg_photo(i)});
  run(*ran.model, *ran.request, ran.items);
  return ran;
}

class ClipSegParity : public ::testing::TestWithParam<std::string> {};

TEST_P(ClipSegParity, MapsEqualTheReference) {
  const testing::Golden golden = testing::read_golden(clipseg_folder(GetParam()) / "golden.safetensors");
  const RanTexts ran = run_texts(GetParam(), {});
  const ClipSegModel& model = as_model<ClipSegModel>(*ran.model);
  const Tensor embeddings = model.embed(kTexts);
  for (size_t i = 0; i < 2; ++i) {
    const auto encoding = model.encode(ran.items[i].photo);
    const Tensor want = golden[str("logits_", i)];
    for (int64_t t = 0; t < 3; ++t) {
      const Tensor logits = model.logits(*encoding, embeddings.narrow(0, t, 1)).unsqueeze(0);
      EXPECT_TRUE(
          testing::close(thinned_maps(logits), ops::contiguous(want.narrow(0, t, 1)), 1e-5 * largest_logit(want)))
          << i << " " << t;
    }
    const Tensor full = ran.request->array(ran.items[i], 0);
    EXPECT_EQ(full.shape(), (Shape{3, ran.items[i].height, ran.items[i].width}));
    EXPECT_TRUE(testing::close(thinned_maps(full), golden[str("probabilities_", i)], 1e-5)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ClipSegParity, ::testing::Values("plain", "refined"),
                         [](const auto& name) { return name.param; });

TEST(ClipSegTask, RunsInTheOtherPrecisions) {
  const Tensor want = testing::read_golden(clipseg_folder("plain") / "golden.safetensors")["probabilities_0"];
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.1}}) {
    const auto opened = open_model(clipseg_folder("plain"), {.model = {.precision = precision}});
    const ClipSegModel& model = as_model<ClipSegModel>(*opened);
    const auto encoding = model.encode(clipseg_photo(0));
    const Tensor text = model.embed({kTexts[0]});
    const Tensor got =
        models::clipseg_probabilities(model.logits(*encoding, text), encoding->height, encoding->width).unsqueeze(0);
    EXPECT_TRUE(testing::close(thinned_maps(got), ops::contiguous(want.narrow(0, 0, 1)), tolerance))
        << kernels::name_of(precision);
  }
}

TEST(ClipSegTask, TellsTheMaskOfEachText) {
  for (const double threshold : {0.5, 0.3}) {
    Parameters given{{"raw", "true"}, {"rle", "true"}};
    if (threshold != 0.5) given.emplace_back("threshold", str(threshold));
    const RanTexts ran = run_texts("plain", given);
    const json object = json::parse(ran.request->json(ran.items[1]));
    EXPECT_EQ(object["path"], "image 1");
    EXPECT_EQ(object["shape"], (json{97, 163}));
    ASSERT_EQ(object["texts"].size(), 3U);
    for (int64_t t = 0; t < 3; ++t) {
      const json& text = object["texts"][static_cast<size_t>(t)];
      const Tensor map = ran.request->array(ran.items[1], 0).select(0, t);
      EXPECT_EQ(text["text"], kTexts[static_cast<size_t>(t)]);
      const std::vector<float> values = text["probabilities"];
      EXPECT_TRUE(std::equal(values.begin(), values.end(), map.data<float>(), map.data<float>() + map.numel()));
      EXPECT_EQ(text["max"].get<float>(), std::ranges::max(values));
      const sam::BinaryMask mask = sam::threshold(map, static_cast<float>(threshold));
      EXPECT_EQ(text["area"], sam::area(mask));
      EXPECT_EQ(text["rle"], json(sam::rle_json(sam::encode(mask))));
      EXPECT_EQ(text["bbox"], json(sam::coco_box({.rle = sam::encode(mask), .box = sam::bounding_box(mask)})));
    }
  }
  const RanTexts without = run_texts("plain", {});
  for (const char* key : {"probabilities", "rle"})
    EXPECT_FALSE(json::parse(without.request->json(without.items[0]))["texts"][0].contains(key));
}

TEST(ClipSegTask, RendersMasksOrProbabilities) {
  const RanTexts none = run_texts("plain", {{"threshold", "1"}});
  EXPECT_EQ(none.request->render(none.items[0]).pixels, none.items[0].photo.pixels) << "no pixel is above 1";
  const RanTexts masks = run_texts("plain", {});
  EXPECT_NE(masks.request->render(masks.items[0]).pixels, masks.items[0].photo.pixels);
  const RanTexts heat = run_texts("plain", {{"heat", "true"}, {"opacity", "1"}});
  const image::Image image = heat.request->render(heat.items[0]);
  EXPECT_GT(image.width, 3 * heat.items[0].width);
  EXPECT_EQ(image.height, heat.items[0].height);
}

TEST(ClipSegTask, RefusesTextsThatItCannotEmbed) {
  const auto error_with = [](const std::vector<std::string>& texts) {
    return error_of([&] { run_texts("plain", {}, texts); });
  };
  EXPECT_ERROR(error_with({}), "text", "none");
  EXPECT_ERROR(error_with({" "}), "text 0", "\" \"");
  EXPECT_ERROR(error_of([] { run_texts("plain", {{"threshold", "2"}}); }), "threshold", "'2'");
}

TEST(ClipSegTask, CutsATextLongerThanTheContext) {
  std::string fitting = "cat";
  for (int i = 1; i < 22; ++i) fitting += " cat";  // with the tokens of begin and end, 24
  const testing::Warnings warnings;
  const RanTexts fits = run_texts("plain", {}, {fitting});
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
  const RanTexts cut = run_texts("plain", {}, {fitting + " cat"});
  EXPECT_EQ(warnings.messages.size(), 1U);
  EXPECT_TRUE(testing::close(cut.request->array(cut.items[0], 0), fits.request->array(fits.items[0], 0), 0));
}

TEST(ClipSegTask, TakesImagesOfAnyShape) {
  const auto opened = open_model(clipseg_folder("plain"));
  const ClipSegModel& model = as_model<ClipSegModel>(*opened);
  const Tensor text = model.embed({"a cat"});
  for (const auto& [width, height] : {std::pair{5000, 1}, {1, 3}}) {
    const auto encoding = model.encode(image::make_image(width, height, 3));
    EXPECT_EQ(models::clipseg_probabilities(model.logits(*encoding, text), height, width).shape(),
              (Shape{height, width}));
  }
}

TEST(ClipSegModel, OtherTasksAndOptionsAreRefused) {
  const auto model = open_model(clipseg_folder("plain"));
  EXPECT_EQ(first_task(*model).name, "segment");
  EXPECT_ERROR(error_of([] { open_model(clipseg_folder("plain"), {.model = {.labels = {"cat"}}}); }),
               "options of the model", "others");
  const std::string refused = error_of([] { vitrail::Model{clipseg_folder("plain").string()}; });
  EXPECT_NE(refused.find("`vitrail segment`"), refused.npos) << refused;
}

TEST(ClipSegModel, ReadsItsFilesWithoutWarnings) {
  const testing::Warnings warnings;
  open_model(clipseg_folder("refined"));
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
}

// The message about the fixture with a change of a file.
std::string clipseg_config_error(const std::function<void(json&)>& change, const std::string& file = "config.json") {
  const fs::path to = testing::scratch_folder();
  fs::copy(clipseg_folder("refined"), to, fs::copy_options::recursive);
  json object = json::parse(read_text_file(to / file));
  change(object);
  std::ofstream(to / file) << object;
  std::string message = error_of([&] { open_model(to); });
  if (message.starts_with(to.string())) message.erase(0, to.string().size() + 1);
  return message;
}

TEST(ClipSegModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* key, const json& value, const char* got) {
    EXPECT_ERROR(clipseg_config_error([&](json& c) { c[key] = value; }), str("config.json: ", key), got);
  };
  expect("model_type", "clip", "\"clip\"");
  expect("extract_layers", {0, 5}, "0, 5");
  expect("extract_layers", {3, 0}, "3, 0");
  expect("conditional_layer", 2, "2");
  expect("reduce_dim", 0, "0");
  expect("decoder_num_attention_heads", 3, "3");
  EXPECT_ERROR(clipseg_config_error([](json& c) { c["vision_config"]["patch_size"] = 8; }),
               "config.json: use_complex_transposed_convolution", "8 and 8");
  const std::string oblong = clipseg_config_error(
      [](json& c) {
        c["size"] = {{"height", 96}, {"width", 64}};
      },
      "preprocessor_config.json");
  EXPECT_ERROR(oblong, "preprocessor_config.json: size", "96×64");
  const std::string shapes = clipseg_config_error([](json& c) { c["decoder_intermediate_size"] = 21; });
  EXPECT_NE(shapes.find("layers.0.mlp.fc1.weight"), shapes.npos) << shapes;
  const std::string towers = clipseg_config_error([](json& c) { c["text_config"]["intermediate_size"] = 21; });
  EXPECT_NE(towers.find("blocks.0.mlp.fc1.weight"), towers.npos) << towers;
}

}  // namespace
}  // namespace vitrail::tasks
