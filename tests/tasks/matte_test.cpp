// SPDX-License-Identifier: Apache-2.0
// ViTMatte against transformers': fixtures of tools/golden/vitmatte.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/tasks/item_files.h"
#include "vitrail/tasks/matte/matte_model.h"
#include "vitrail/tasks/matte/trimap.h"
#include "vitrail/tasks/run.h"

namespace vitrail::tasks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::error_of;

constexpr int64_t kGoldenStep = 3;  // golden maps have every third row and column

fs::path matte_folder(const std::string& name) {
  return testing::fixture("vitmatte/" + name + "/config.json").parent_path();
}

image::Image image_of(const Tensor& pixels) {
  image::Image image = image::make_image(pixels.size(1), pixels.size(0), pixels.rank() == 3 ? 3 : 1);
  std::memcpy(image.pixels.data(), pixels.raw(), image.pixels.size());
  return image;
}

image::Image matte_photo(int index) {
  static const testing::Golden images = testing::read_golden(testing::fixture("depth/images.safetensors"));
  return image_of(images["image_" + std::to_string(index)]);
}

image::Image fixture_trimap(int index) {
  static const testing::Golden trimaps = testing::read_golden(testing::fixture("vitmatte/trimaps.safetensors"));
  return image_of(trimaps["trimap_" + std::to_string(index)]);
}

std::string png_of(const image::Image& image) {
  const std::vector<uint8_t> bytes = image::encode_png(image);
  return {bytes.begin(), bytes.end()};
}

// The object of a trimap: what is not background.
image::Image mask_of(image::Image trimap) {
  for (uint8_t& pixel : trimap.pixels) pixel = pixel != 0 ? 255 : 0;
  return trimap;
}

Tensor thinned_alpha(const Tensor& map) {
  const int64_t rows = (map.size(0) + kGoldenStep - 1) / kGoldenStep,
                columns = (map.size(1) + kGoldenStep - 1) / kGoldenStep;
  const Tensor result = Tensor::empty({rows, columns});
  for (int64_t i = 0; i < result.numel(); ++i)
    result.data<float>()[i] = map.data<float>()[i / columns * kGoldenStep * map.size(1) + i % columns * kGoldenStep];
  return result;
}

const Task& task() { return *std::ranges::find(tasks(), "matte", &Task::name); }

// A request with its files among the options, as a server gets them.
struct RanMatte {
  std::unique_ptr<LoadedModel> model = open_model(matte_folder("windows"));
  std::unique_ptr<Request> request = {};
  std::vector<Item> items = {};
};

RanMatte run_matte(const Parameters& given, size_t images = 1) {
  RanMatte ran;
  RequestOptions options;
  options.add(given);
  const ItemFiles files(task(), options);
  ran.request = task().request(*ran.model, options, {.model = "m", .render = true, .input_files = files.names()});
  options.require_all_taken();
  for (size_t i = 0; i < images; ++i) {
    ran.items.push_back({.name = str("image ", i), .photo = matte_photo(static_cast<int>(i))});
    ran.items.back().input_files = files.of(i, images);
  }
  run(*ran.model, *ran.request, ran.items);
  return ran;
}

std::string matte_error(const Parameters& given, size_t images = 1) {
  return error_of([&] { run_matte(given, images); });
}

class MatteParity : public ::testing::TestWithParam<std::string> {};

TEST_P(MatteParity, AlphaEqualsTheReference) {
  const testing::Golden golden = testing::read_golden(matte_folder(GetParam()) / "golden.safetensors");
  const auto model = open_model(matte_folder(GetParam()));
  for (int i = 0; i < 2; ++i) {
    const Tensor alpha = as_model<MatteModel>(*model).alpha(matte_photo(i), fixture_trimap(i));
    EXPECT_EQ(alpha.shape(), (Shape{matte_photo(i).height, matte_photo(i).width}));
    EXPECT_TRUE(testing::close(thinned_alpha(alpha), golden["alpha_" + std::to_string(i)], 1e-5)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MatteParity, ::testing::Values("windows", "patch8"),
                         [](const auto& name) { return name.param; });

TEST(MatteTask, RunsInTheOtherPrecisions) {
  const Tensor want = testing::read_golden(matte_folder("windows") / "golden.safetensors")["alpha_0"];
  for (const auto& [precision, tolerance] :
       {std::pair{kernels::Precision::half, 0.02}, {kernels::Precision::int8, 0.1}}) {
    const auto model = open_model(matte_folder("windows"), {.model = {.precision = precision}});
    const Tensor got = thinned_alpha(as_model<MatteModel>(*model).alpha(matte_photo(0), fixture_trimap(0)));
    EXPECT_TRUE(testing::close(got, want, tolerance)) << kernels::name_of(precision);
  }
}

TEST(MatteTask, TellsTheMeanAndTheUnknownShare) {
  const RanMatte ran =
      run_matte({{"trimap", png_of(fixture_trimap(0))}, {"trimap", png_of(fixture_trimap(1))}, {"raw", "true"}}, 2);
  for (size_t i = 0; i < 2; ++i) {
    const json object = json::parse(ran.request->json(ran.items[i]));
    const Tensor alpha = ran.request->array(ran.items[i], 0);
    EXPECT_EQ(object["path"], str("image ", i));
    EXPECT_EQ(object["shape"], (json{alpha.size(0), alpha.size(1)}));
    const std::vector<float> values = object["alpha"];
    EXPECT_TRUE(std::equal(values.begin(), values.end(), alpha.data<float>(), alpha.data<float>() + alpha.numel()));
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_NEAR(object["mean"].get<double>(), sum / static_cast<double>(values.size()), 1e-6);
    const image::Image trimap = fixture_trimap(static_cast<int>(i));
    EXPECT_NEAR(object["unknown"].get<double>(),
                static_cast<double>(std::ranges::count(trimap.pixels, 128)) / static_cast<double>(trimap.pixels.size()),
                1e-9);
  }
  const RanMatte without = run_matte({{"trimap", png_of(fixture_trimap(0))}});
  EXPECT_FALSE(json::parse(without.request->json(without.items[0])).contains("alpha"));
}

TEST(MatteTask, RendersTheCutOutOrAlpha) {
  const std::pair<std::string, std::string> trimap{"trimap", png_of(fixture_trimap(0))};
  const RanMatte gray = run_matte({trimap, {"colors", "gray"}});
  const Tensor alpha = gray.request->array(gray.items[0], 0);
  const std::vector<uint8_t> gray_file = gray.request->render_png(gray.items[0]);
  const image::Image map = image::decode(std::as_bytes(std::span(gray_file)), {.mode = image::ColorMode::grey}, "file");
  for (int64_t i = 0; i < alpha.numel(); i += 101)
    ASSERT_EQ(map.pixels[static_cast<size_t>(i)], std::lround(alpha.data<float>()[i] * 255)) << i;
  const RanMatte rgba = run_matte({trimap});
  const std::vector<uint8_t> file = rgba.request->render_png(rgba.items[0]);
  EXPECT_EQ(file, image::encode_png(matte_photo(0), map));
}

TEST(MatteTask, AMaskGivesTheTrimapOfItsBand) {
  const image::Image mask = mask_of(fixture_trimap(0));
  const std::string file = png_of(mask);
  const sam::BinaryMask binary{mask.width, mask.height, mask.pixels};
  const auto model = open_model(matte_folder("windows"));
  for (const int64_t band : {10, 4}) {
    Parameters options{{"mask", "data:image/png;base64," + to_base64(std::as_bytes(std::span(file)))}};
    if (band != 10) options.emplace_back("band", std::to_string(band));
    const RanMatte ran = run_matte(options);
    const Tensor want = as_model<MatteModel>(*model).alpha(matte_photo(0), trimap_of(binary, band));
    EXPECT_TRUE(testing::close(ran.request->array(ran.items[0], 0), want, 0)) << band;
  }
}

TEST(MatteTask, RefusesWhatIsNoTrimap) {
  const std::string trimap = png_of(fixture_trimap(0)), mask = png_of(mask_of(fixture_trimap(0)));
  EXPECT_ERROR(matte_error({}), "trimap", "none of them");
  EXPECT_ERROR(matte_error({{"trimap", trimap}, {"mask", mask}}), "mask", "both");
  EXPECT_ERROR(matte_error({{"trimap", trimap}, {"band", "3"}}), "band", "a trimap");
  EXPECT_ERROR(matte_error({{"mask", mask}, {"band", "0"}}), "band", "'0'");
  EXPECT_ERROR(matte_error({{"trimap", png_of(fixture_trimap(1))}}), "trimap", "163×97");
  EXPECT_ERROR(matte_error({{"trimap", mask}}), "trimap", "none");
  EXPECT_ERROR(matte_error({{"trimap", "data:text"}}), "trimap", "data:text");
  EXPECT_ERROR(matte_error({{"mask", trimap}}), "mask", "an image of several values");
  image::Image full = fixture_trimap(0);
  std::ranges::fill(full.pixels, 255);
  EXPECT_ERROR(matte_error({{"mask", png_of(full)}}), "mask", "none");
  const Parameters three{{"trimap", trimap}, {"trimap", trimap}, {"trimap", trimap}};
  EXPECT_ERROR(matte_error(three, 2), "trimap", "3");
}

TEST(MatteTask, ImagesThatAreSmallerThanAPatchArePadded) {
  const auto model = open_model(matte_folder("windows"));
  for (const auto& [width, height] : {std::pair{5000, 1}, {1, 3}}) {
    image::Image trimap = image::make_image(width, height, 1);
    std::ranges::fill(trimap.pixels, 128);
    const Tensor alpha = as_model<MatteModel>(*model).alpha(image::make_image(width, height, 3), trimap);
    EXPECT_EQ(alpha.shape(), (Shape{height, width}));
  }
  EXPECT_ERROR(error_of([&] {
                 as_model<MatteModel>(*model).alpha(image::make_image(1 << 18, 40, 3),
                                                    image::make_image(1 << 18, 40, 1));
               }),
               "image", "262144×40");
}

TEST(MatteModel, OtherTasksAndOptionsAreRefused) {
  const auto model = open_model(matte_folder("windows"));
  EXPECT_EQ(first_task(*model).name, "matte");
  EXPECT_ERROR(error_of([] { open_model(matte_folder("windows"), {.model = {.labels = {"cat"}}}); }),
               "options of the model", "others");
  Item item;
  EXPECT_ERROR(error_of([&] { model->tensors()->compute(item, nullptr, {}); }), "images", "none");
  const std::string refused = error_of([] { vitrail::Model{matte_folder("windows").string()}; });
  EXPECT_NE(refused.find("`vitrail matte`"), refused.npos) << refused;
}

// The message about the fixture with a change of a file.
std::string matte_config_error(const std::function<void(json&)>& change, const std::string& file = "config.json") {
  const fs::path from = matte_folder("windows"), to = testing::scratch_folder();
  for (const char* name : {"config.json", "preprocessor_config.json", "model.safetensors"})
    fs::copy_file(from / name, to / name);
  json object = json::parse(read_text_file(from / file));
  change(object);
  std::ofstream(to / file) << object;
  std::string message = error_of([&] { open_model(to); });
  if (message.starts_with(to.string())) message.erase(0, to.string().size() + 1);
  return message;
}

TEST(MatteModel, RefusesOtherConfigurations) {
  const auto expect = [](const char* where, const char* value, const std::function<void(json&)>& change) {
    EXPECT_ERROR(matte_config_error(change), str("config.json: ", where), value);
  };
  const auto backbone = [&](const char* key, const json& value, const char* got) {
    expect(str("backbone_config: ", key).c_str(), got, [&](json& c) { c["backbone_config"][key] = value; });
  };
  backbone("model_type", "swin", "\"swin\"");
  backbone("use_relative_position_embeddings", false, "false");
  backbone("use_absolute_position_embeddings", false, "false");
  backbone("num_channels", 3, "3");
  backbone("hidden_act", "relu", "\"relu\"");
  backbone("num_attention_heads", 5, "5");
  backbone("mlp_ratio", 0, "0");
  backbone("image_size", {64, 96}, "64×96");
  backbone("patch_size", 128, "128");
  backbone("window_block_indices", {4}, "4");
  backbone("window_size", 0, "0");
  backbone("residual_block_indices", {-1}, "-1");
  backbone("out_features", {"stage2", "stage4"}, "[\"stage2\",\"stage4\"]");
  backbone("out_indices", {2}, "2");
  expect("model_type", "\"vit\"", [](json& c) { c["model_type"] = "vit"; });
  expect("backbone_config", "none", [](json& c) { c.erase("backbone_config"); });
  expect("hidden_size", "32", [](json& c) { c["hidden_size"] = 32; });
  expect("fusion_hidden_sizes", "3", [](json& c) { c["fusion_hidden_sizes"] = {8, 8, 8}; });
  expect("fusion_hidden_sizes", "0", [](json& c) { c["fusion_hidden_sizes"] = {8, 8, 8, 0}; });
  expect("convstream_hidden_sizes", "2", [](json& c) { c["convstream_hidden_sizes"] = {8, 8}; });
  const auto processor = [](const char* key, const json& value, const char* got) {
    EXPECT_ERROR(matte_config_error([&](json& c) { c[key] = value; }, "preprocessor_config.json"),
                 str("preprocessor_config.json: ", key), got);
  };
  processor("image_processor_type", "ViTImageProcessor", "\"ViTImageProcessor\"");
  processor("do_pad", false, "false");
  processor("size_divisor", 24, "24");
  const std::string shapes = matte_config_error([](json& c) { c["convstream_hidden_sizes"] = {6, 8, 11}; });
  EXPECT_NE(shapes.find("decoder.convstream.convs.2.conv.weight"), shapes.npos) << shapes;
}

// The definition, with all pixels of each neighbourhood.
TEST(TrimapOf, IsTheErosionAndTheDilationOfTheMask) {
  sam::BinaryMask mask = sam::make_mask(17, 13);
  for (int64_t i = 0; i < 17 * 13; ++i) {
    const int64_t y = i / 17, x = i % 17;
    mask.pixels[static_cast<size_t>(i)] = (y >= 2 && y < 11 && x < 9) || (y == 12 && x == 15);
  }
  for (const int64_t band : {1, 2, 3, 40}) {
    const image::Image trimap = trimap_of(mask, band);
    for (int64_t y = 0; y < 13; ++y) {
      for (int64_t x = 0; x < 17; ++x) {
        bool inside = false, outside = false;
        for (int64_t v = std::max<int64_t>(y - band, 0); v <= std::min<int64_t>(y + band, 12); ++v) {
          for (int64_t u = std::max<int64_t>(x - band, 0); u <= std::min<int64_t>(x + band, 16); ++u)
            (mask.row(v)[u] ? inside : outside) = true;
        }
        ASSERT_EQ(trimap.row(y)[x], inside && outside ? 128 : inside ? 255 : 0) << band << " " << x << "," << y;
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::tasks
