// SPDX-License-Identifier: Apache-2.0
// Label maps of semantic segmenters against transformers': fixtures of tools/golden/semantic.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/label_image.h"
#include "vitrail/image/text.h"
#include "vitrail/sam/rle.h"
#include "vitrail/tasks/label_map/semantic_model.h"
#include "vitrail/tasks/run.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

constexpr int64_t kThinning = 3;  // golden maps have every third row and column
constexpr int kNearTie = 255;     // where the two best classes are too close

fs::path segmenter(const std::string& name) {
  return testing::fixture("semantic/" + name + "/config.json").parent_path();
}

image::Image sample_image(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  const Tensor& pixels = images["image_" + std::to_string(index)];
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), 3);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

// Every third row and column of [h, w, C].
Tensor every_third(const Tensor& map) {
  const int64_t rows = (map.size(0) + kThinning - 1) / kThinning, columns = (map.size(1) + kThinning - 1) / kThinning;
  const Tensor result = Tensor::empty({rows, columns, map.size(2)});
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t from = i / columns * kThinning * map.size(1) + i % columns * kThinning;
    std::copy_n(map.data<float>() + from * map.size(2), map.size(2), result.data<float>() + i * map.size(2));
  }
  return result;
}

struct Segmented {
  std::unique_ptr<LoadedModel> model;
  std::unique_ptr<Request> request;
  std::vector<Item> items;
};

Segmented segment_images(const fs::path& folder, const Parameters& given = {}) {
  Segmented done{open_model(folder), {}, {}};
  RequestOptions options;
  options.add(given);
  done.request = find_task("segment", *done.model)->request(*done.model, options, {.model = "m", .render = true});
  options.require_all_taken();
  for (int i = 0; i < 2; ++i) done.items.push_back({.name = str("image ", i), .photo = sample_image(i)});
  run(*done.model, *done.request, done.items);
  return done;
}

double largest_of(const Tensor& values) {
  double largest = 0;
  for (int64_t i = 0; i < values.numel(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(values.data<float>()[i])));
  return largest;
}

class SemanticParity : public ::testing::TestWithParam<std::string> {};

TEST_P(SemanticParity, LogitsAndLabelsEqualTheReference) {
  const testing::Golden golden = testing::read_golden(segmenter(GetParam()) / "golden.safetensors");
  const Segmented done = segment_images(segmenter(GetParam()));
  for (size_t i = 0; i < 2; ++i) {
    const Tensor want = golden["logits_" + std::to_string(i)], labels = golden["labels_" + std::to_string(i)];
    const auto encoding = done.model->encode(done.items[i].photo);
    const Tensor& logits = static_cast<const SemanticEncoding&>(*encoding).logits;
    EXPECT_TRUE(testing::close(every_third(logits.contiguous()), want, 1e-5 * largest_of(want))) << i;
    const Tensor map = done.request->array(done.items[i], 0);
    ASSERT_EQ(map.shape(), (Shape{done.items[i].height, done.items[i].width}));
    const Tensor got = every_third(map.unsqueeze(2)).squeeze(2);
    ASSERT_EQ(got.shape(), labels.shape());
    std::set<int> seen;
    for (int64_t p = 0; p < got.numel(); ++p) {
      const int label = labels.data<uint8_t>()[p];
      if (label == kNearTie) continue;
      seen.insert(label);
      ASSERT_EQ(got.data<float>()[p], static_cast<float>(label)) << i << " at " << p;
    }
    EXPECT_GT(seen.size(), 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SemanticParity, ::testing::Values("linear", "dpt", "dpt_norms", "beit", "data2vec"),
                         [](const auto& name) { return name.param; });

TEST(LabelMapTask, RunsInTheOtherPrecisions) {
  for (const char* name : {"linear", "dpt", "beit"}) {
    const Segmented exact = segment_images(segmenter(name));
    const Tensor want = exact.request->array(exact.items[0], 0);
    for (const auto& [precision, share] :
         {std::pair{kernels::Precision::half, 0.95}, {kernels::Precision::int8, 0.8}}) {
      const auto model = open_model(segmenter(name), {.model = {.precision = precision}});
      EXPECT_EQ(model->precision(), precision);
      const auto encoding = model->encode(exact.items[0].photo);
      const std::vector<int32_t> got = classes_of(as_model<LabelMapModel>(*model).label_map(
          *encoding, LabelMapTask::semantic, encoding->height, encoding->width, {}));
      double equal = 0;
      for (size_t i = 0; i < got.size(); ++i) equal += want.data<float>()[i] == static_cast<float>(got[i]);
      EXPECT_GT(equal / static_cast<double>(got.size()), share) << name << kernels::name_of(precision);
    }
  }
}

TEST(LabelMapTask, ListsTheSegmentsWithTheirClasses) {
  const Segmented done = segment_images(segmenter("linear"), {{"rle", "true"}});
  const json object = json::parse(done.request->json(done.items[1]));
  EXPECT_EQ(object["path"], "image 1");
  EXPECT_EQ(object["shape"], (json{97, 163}));
  EXPECT_EQ(object["task"], "semantic");
  const Tensor map = done.request->array(done.items[1], 0);
  int64_t pixels = 0;
  const std::vector<std::string> names = done.model->class_names();
  ASSERT_GT(object["segments"].size(), 2u);
  for (const json& segment : object["segments"]) {
    const int64_t index = segment["index"];
    EXPECT_EQ(segment["id"], index + 1);
    EXPECT_EQ(segment["label"], names.at(static_cast<size_t>(index)));
    EXPECT_FALSE(segment.contains("score"));
    const sam::BinaryMask mask =
        sam::decode(sam::from_coco(segment["rle"]["counts"].get<std::string>(), 163, 97, "rle"));
    EXPECT_EQ(sam::area(mask), segment["area"].get<int64_t>());
    const sam::PixelBox box = sam::bounding_box(mask);
    EXPECT_EQ(segment["bbox"], (json{box.x0, box.y0, box.x1 - box.x0 + 1, box.y1 - box.y0 + 1}));
    for (int64_t i = 0; i < map.numel(); ++i)
      ASSERT_EQ(mask.pixels[static_cast<size_t>(i)] == 1, map.data<float>()[i] == static_cast<float>(index));
    pixels += segment["area"].get<int64_t>();
  }
  EXPECT_EQ(pixels, map.numel());
  const Segmented without = segment_images(segmenter("linear"));
  EXPECT_FALSE(json::parse(without.request->json(without.items[0]))["segments"][0].contains("rle"));
}

std::vector<uint8_t> rendered(const Parameters& options, int image = 0) {
  const Segmented done = segment_images(segmenter("linear"), options);
  return done.request->render_png(done.items[static_cast<size_t>(image)]);
}

TEST(LabelMapTask, RendersLabelsAndCocosPanopticPng) {
  const Segmented done = segment_images(segmenter("linear"));
  const Tensor map = done.request->array(done.items[0], 0);
  const std::vector<uint8_t> labels = rendered({{"colors", "labels"}}), panoptic = rendered({{"colors", "panoptic"}});
  const image::LabelImage read = image::decode_labels(std::as_bytes(std::span(labels)), "labels");
  const image::Image ids = image::decode(std::as_bytes(std::span(panoptic)), {}, "panoptic");
  for (int64_t i = 0; i < map.numel(); ++i) {
    const auto at = static_cast<size_t>(i);
    ASSERT_EQ(static_cast<float>(read.labels[at]), map.data<float>()[i]);
    const int id = ids.pixels[3 * at] + 256 * ids.pixels[3 * at + 1] + 65536 * ids.pixels[3 * at + 2];
    ASSERT_EQ(static_cast<float>(id), map.data<float>()[i] + 1);
  }
}

TEST(LabelMapTask, DrawsEachSegmentInTheColourOfTheJson) {
  const Segmented opaque = segment_images(segmenter("linear"), {{"opacity", "1"}});
  const json object = json::parse(opaque.request->json(opaque.items[0]));
  std::map<int, std::vector<uint8_t>> colors;
  for (const json& segment : object["segments"])
    colors[segment["index"]] = segment["color"].get<std::vector<uint8_t>>();
  const image::Image image = opaque.request->render(opaque.items[0]);
  const Tensor map = opaque.request->array(opaque.items[0], 0);
  for (int64_t i = 0; i < map.numel(); i += 7) {
    const std::vector<uint8_t> pixel(image.pixels.begin() + 3 * i, image.pixels.begin() + 3 * i + 3);
    ASSERT_EQ(pixel, colors.at(static_cast<int>(map.data<float>()[i])));
  }
  const Segmented clear = segment_images(segmenter("linear"), {{"opacity", "0"}, {"legend", "true"}});
  const image::Image legend = clear.request->render(clear.items[0]);
  const image::Image& photo = clear.items[0].photo;
  EXPECT_TRUE(std::equal(photo.pixels.begin(), photo.pixels.end(), legend.pixels.begin())) << "the image itself";
  const auto lines = static_cast<int64_t>(object["segments"].size());
  EXPECT_EQ(legend.height, photo.height + lines * (image::line_height(1) + 2));
  const std::vector<uint8_t> swatch(legend.row(photo.height + 2) + 6, legend.row(photo.height + 2) + 9);
  EXPECT_EQ(json(swatch), object["segments"][0]["color"]);
}

// PASCAL VOC's colour map: 1 is dark red, 2 dark green, 3 olive, and 9 light red.
TEST(LabelMapTask, ColoursAreThoseOfPascalVoc) {
  const Segmented done = segment_images(segmenter("linear"));
  std::map<int, json> colors;
  for (const Item& item : done.items) {
    const json object = json::parse(done.request->json(item));
    for (const json& segment : object["segments"]) colors[segment["id"]] = segment["color"];
  }
  EXPECT_EQ(colors.at(1), (json{128, 0, 0}));
  EXPECT_EQ(colors.at(4), (json{0, 0, 128}));
  EXPECT_EQ(colors.at(7), (json{128, 128, 128}));
}

TEST(LabelMapTask, AModelSaysWhatItCanDo) {
  EXPECT_ERROR(error_of([] { segment_images(segmenter("linear"), {{"task", "panoptic"}}); }), "task", "panoptic");
  EXPECT_NO_THROW(segment_images(segmenter("linear"), {{"task", "semantic"}}));
  const auto model = open_model(segmenter("linear"));
  EXPECT_EQ(first_task(*model).name, "segment");
  EXPECT_EQ(find_task("depth", *model), nullptr);
  EXPECT_ERROR(error_of([] { open_model(segmenter("linear"), {.model = {.labels = {"cat"}}}); }),
               "options of the model", "others");
}

TEST(LabelMapTask, TheTensorHasTheNominalSize) {
  const auto model = open_model(segmenter("linear"));
  const auto request = model->tensors();
  EXPECT_EQ(request->outputs()[0].shape, (Shape{98, 98}));
  std::vector<Item> items{{.name = "image", .photo = sample_image(0)}};
  run(*model, *request, items);
  EXPECT_EQ(request->array(items[0], 0).shape(), (Shape{98, 98}));
}

TEST(SemanticModel, RefusesImagesThatAreTooNarrow) {
  const auto model = open_model(segmenter("linear"));
  EXPECT_ERROR(error_of([&] { model->encode(image::make_image(5000, 1, 3)); }), "image",
               "5000×1 pixels, at the input 98×0");
}

// A folder with the fixture's weights and another configuration.
fs::path with_config(const std::string& name, const std::function<void(json&)>& change,
                     const char* file = "config.json") {
  const fs::path from = segmenter(name), to = testing::scratch_folder();
  for (const auto& entry : fs::directory_iterator(from)) fs::copy_file(entry.path(), to / entry.path().filename());
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  return to;
}

TEST(SemanticModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* where, const char* value, const std::function<void(json&)>& change) {
    const fs::path folder = with_config("linear", change);
    EXPECT_ERROR(error_of([&] { open_model(folder); }), (folder / "config.json").string() + ": " + where, value);
  };
  const auto own = [&](const char* field, const json& value, const char* got) {
    expect((std::string("segmentation: ") + field).c_str(), got, [&](json& c) { c["segmentation"][field] = value; });
  };
  own("head", "mlp", "\"mlp\"");
  own("layers", json::array(), "none");
  own("layers", {4}, "4");
  own("labels", json::array(), "0");
  expect("model_type", "\"\"", [](json& c) { c.erase("segmentation"); });
  own("head", "upernet", "\"upernet\"");
}

TEST(SemanticModel, RefusesOtherConfigurationsOfTransformers) {
  const auto expect = [](const char* name, const char* where, const char* value,
                         const std::function<void(json&)>& change, const char* file = "config.json") {
    const fs::path folder = with_config(name, change, file);
    EXPECT_ERROR(error_of([&] { open_model(folder); }), (folder / file).string() + ": " + where, value);
  };
  expect("dpt", "backbone_config", "one", [](json& c) { c["backbone_config"] = {{"model_type", "dinov2"}}; });
  expect("dpt", "head_in_index", "0", [](json& c) { c["head_in_index"] = 0; });
  expect("dpt", "model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  expect("beit", "out_indices", "3", [](json& c) { c["out_indices"] = {2, 3, 4}; });
  expect("beit", "out_indices", "1", [](json& c) { c["out_indices"] = {1, 2, 3, 4}; });
  expect("beit", "out_indices", "6", [](json& c) { c["out_indices"] = {2, 3, 4, 6}; });
  expect("beit", "pool_scales", "0", [](json& c) { c["pool_scales"] = {1, 0}; });
  expect(
      "beit", "do_center_crop", "true", [](json& c) { c["do_center_crop"] = true; }, "preprocessor_config.json");
  expect(
      "beit", "size", "16",
      [](json& c) {
        c["size"] = {{"height", 112}, {"width", 16}};
      },
      "preprocessor_config.json");
  const fs::path upernet = with_config("beit", [](json& c) { c["model_type"] = "upernet"; });
  const std::string message = error_of([&] { open_model(upernet); });
  EXPECT_NE(message.find("an UPerNet, which is not supported"), message.npos) << message;
}

// Files of the hub, which transformers of that time has written.
TEST(SemanticModel, ReadsTheOlderNamesOfData2Vec) {
  const fs::path folder = with_config("data2vec", [](json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  static const std::regex block(R"(psp_modules\.blocks\.(\d)\.conv\.)");
  for (const auto& [name, tensor] : testing::read_golden(folder / "model.safetensors").tensors) {
    std::string older = std::regex_replace(name, block, "psp_modules.$1.1.");
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"psp_bottleneck", "bottleneck"},
                                   {".convolution.", ".conv."},
                                   {".normalization.", ".bn."}}) {
      const size_t at = older.starts_with("decode_head") ? older.find(from) : older.npos;
      if (at != older.npos) older.replace(at, from.size(), to);
    }
    tensors.emplace_back(older, tensor);
  }
  ASSERT_TRUE(
      std::ranges::any_of(tensors, [](const auto& t) { return t.first == "decode_head.bottleneck.bn.weight"; }));
  weights::write_safetensors(folder / "model.safetensors", tensors);
  const Segmented newer = segment_images(segmenter("data2vec")), older = segment_images(folder);
  EXPECT_TRUE(testing::close(older.request->array(older.items[0], 0), newer.request->array(newer.items[0], 0), 0));
}

TEST(SemanticModel, RefusesAHeadWithoutItsBackbone) {
  const fs::path folder = with_config("linear", [](json&) {});
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, tensor] : testing::read_golden(folder / "model.safetensors").tensors) {
    if (!name.starts_with("backbone.")) tensors.emplace_back(name, tensor);
  }
  weights::write_safetensors(folder / "model.safetensors", tensors);
  EXPECT_ERROR(error_of([&] { open_model(folder); }), (folder / "model.safetensors").string(), "a head alone");
  fs::remove(folder / "config.json");
  EXPECT_ERROR(error_of([&] { open_model(folder); }), (folder / "model.safetensors").string(), "a head alone");
}

TEST(SemanticConfig, IsReadAsItWasWritten) {
  models::SemanticConfig config =
      models::read_semantic_config(read_text_file(segmenter("linear") / "config.json"), "c");
  const std::string text = models::write_semantic_config(config);
  const models::SemanticConfig again = models::read_semantic_config(text, "c");
  EXPECT_EQ(again.labels, config.labels);
  EXPECT_EQ(again.layers, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(again.batch_norm, true);
  EXPECT_EQ(again.resize.size, config.resize.size);
  EXPECT_EQ(again.resize.keep_aspect_ratio, true);
  EXPECT_EQ(again.resize.multiple, 14);
  EXPECT_EQ(again.backbone.embed_dim, 24);
  EXPECT_EQ(again.preprocessing.mean, config.preprocessing.mean);
  EXPECT_EQ(models::write_semantic_config(again), text);
}

// MMSegmentation's slide_inference with DINOv2's CenterPadding, from tools/golden/semantic.py.
TEST(SemanticModel, AveragesTheLogitsOfWindows) {
  const testing::Golden golden = testing::read_golden(segmenter("linear") / "windows.safetensors");
  const json about = json::parse(golden.config);
  const auto folder_with = [&](const json& window) {
    return with_config("linear", [&](json& c) {
      c["segmentation"].update({{"size", about["size"]}, {"multiple", 1}, {"window", window}});
    });
  };
  const Segmented done = segment_images(folder_with(about["window"]));
  for (size_t i = 0; i < 2; ++i) {
    const auto encoding = done.model->encode(done.items[i].photo);
    EXPECT_EQ(static_cast<const SemanticEncoding&>(*encoding).windows.size(), about["windows"][i]);
    const Tensor want = golden["labels_" + std::to_string(i)];
    const Tensor got = every_third(done.request->array(done.items[i], 0).unsqueeze(2)).squeeze(2);
    ASSERT_EQ(got.shape(), want.shape());
    for (int64_t p = 0; p < got.numel(); ++p) {
      const int label = want.data<uint8_t>()[p];
      if (label == kNearTie) continue;
      ASSERT_EQ(got.data<float>()[p], static_cast<float>(label)) << i << " at " << p;
    }
  }
  const auto input = done.model->network()->inputs_of(done.items[0].photo);
  EXPECT_EQ(input[0].tensor.shape(), done.model->network()->inputs[0].tensor.shape());
  const std::string where = "config.json: segmentation: window: ";
  const auto refused = [&](const char* key, const json& value) {
    json window = about["window"];
    window[key] = value;
    const std::string message = error_of([&] { open_model(folder_with(window)); });
    return message.substr(std::min(message.find("config.json"), message.size()));
  };
  EXPECT_ERROR(refused("size", {61, 40}), where + "size", "61");
  EXPECT_ERROR(refused("stride", {30, 41}), where + "stride", "41");
}

// A model of one's own with a small DPT head, as training saves it.
TEST(SemanticConfig, AFolderOfADptHeadIsOpened) {
  models::SemanticConfig config =
      models::read_semantic_config(read_text_file(segmenter("linear") / "config.json"), "c");
  config.head = models::SemanticHead::dpt;
  config.batch_norm = false;
  config.layers = {0, 1, 3};
  config.neck = {.readout = models::DptReadout::project,
                 .dim = 24,
                 .hidden_dims = {8, 10, 12},
                 .factors = {2, 1, 0.5},
                 .fusion_dim = 8};
  RandomParams random(1);
  models::SemanticSegmenter model(config, ParamSource(random));
  const fs::path folder = testing::scratch_folder();
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& parameter : model.named_parameters())
    tensors.emplace_back(parameter.name, parameter.tensor);
  weights::write_safetensors(folder / "model.safetensors", tensors);
  std::ofstream(folder / "config.json") << models::write_semantic_config(config);
  const Segmented done = segment_images(folder);
  const auto encoding = done.model->encode(done.items[0].photo);
  const Tensor& logits = static_cast<const SemanticEncoding&>(*encoding).logits;
  EXPECT_EQ(logits.shape(), (Shape{11 * 8, 7 * 8, 7})) << "a map of 11 x 7 patches";
  EXPECT_GT(largest_of(logits.contiguous()), 0);
  config.neck.factors = {2, 1};
  std::ofstream(folder / "config.json") << models::write_semantic_config(config);
  EXPECT_ERROR(error_of([&] { open_model(folder); }),
               (folder / "config.json").string() + ": segmentation: neck_hidden_sizes", "3");
}

}  // namespace
}  // namespace vitrail::tasks
