// SPDX-License-Identifier: Apache-2.0
// vitrail::Model against the program, whose results it has to give bit for bit.
#include "vitrail/pipeline/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "tests/apps/cli_fixture.h"
#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using image::Image;
using image::ImageView;

// The images of a folder in the program's order, decoded for a model.
struct Images {
  std::vector<Image> images;
  std::vector<ImageView> views;

  Images(const Model& model, const fs::path& folder, int n) {
    for (int i = 0; i < n; ++i)
      images.push_back(model.read(folder / (std::string(1, static_cast<char>('a' + i)) + ".png")));
    views.assign(images.begin(), images.end());
  }
};

std::vector<float> values(const Tensor& tensor) {
  const Tensor t = tensor.contiguous();
  return {t.data<float>(), t.data<float>() + t.numel()};
}

// Runs the program with "COMMAND -m MODEL IMAGES OPTION FILE.npy" and further arguments; returns the array.
std::vector<float> array_of(const std::string& command, const fs::path& model, const fs::path& images,
                            const std::string& option, const std::vector<std::string>& further = {}) {
  const fs::path file = scratch_folder() / "array.npy";
  std::vector<std::string> arguments{command, "-m", model, images, option, file};
  arguments.insert(arguments.end(), further.begin(), further.end());
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  return read_npy(file).f32;
}

fs::path int8_folder() {
  const fs::path folder = scratch_folder() / "int8", images = image_folder(3);
  const ProgramResult result = run_program(
      {"convert", small_model(), "-o", folder, "--dtype", "int8", "--calibrate", images, "--tolerance", "0.05"});
  EXPECT_EQ(result.status, 0) << result.err;
  return folder;
}

TEST(Model, ItsLogitsEqualTheProgramsBitForBit) {
  const fs::path folder = image_folder(5);
  for (const char* fixture_name : {"timm_token", "hf_vit", "timm_distilled", "timm_avg"}) {
    const fs::path path = fixture(str("models/", fixture_name));
    const Model model(path);
    const Images images(model, folder, 5);
    EXPECT_EQ(values(model.logits(images.views)), array_of("classify", path, folder, "--logits")) << fixture_name;
  }
}

TEST(Model, PreprocessingThatDoesNotFitItIsAnErrorOfItsFile) {
  for (const bool dynamic : {false, true}) {
    const fs::path folder = with_config("timm_token", [&](nlohmann::json& config) {
      config["pretrained_cfg"]["input_size"] = {3, 36, 36};
      if (dynamic) config["model_args"]["dynamic_img_size"] = true;
    });
    const std::string message = error_of([&] { const Model model(folder); });
    EXPECT_TRUE(message.starts_with((folder / "model.safetensors").string() + ": expected preprocessing to inputs "))
        << message;
    EXPECT_TRUE(contains(message, "got 36×36")) << message;
    EXPECT_EQ(Model(folder, {.load = {.image_size = {{48, 48}}}}).config().vit.img_size[0], 32);
  }
}

TEST(Model, ItsPrecisionIsTheOneThatIsAskedFor) {
  const fs::path folder = image_folder(5), path = small_model();
  std::vector<std::vector<float>> logits;
  for (const auto& [precision, name] :
       {std::pair(kernels::Precision::fp32, "fp32"), std::pair(kernels::Precision::half, "half"),
        std::pair(kernels::Precision::int8, "int8")}) {
    const Model model(path, {.precision = precision});
    logits.push_back(values(model.logits(Images(model, folder, 5).views)));
    EXPECT_EQ(logits.back(), array_of("classify", path, folder, "--logits", {"--precision", name})) << name;
  }
  EXPECT_NE(logits[0], logits[1]);
  EXPECT_NE(logits[1], logits[2]);
}

TEST(Model, AnInt8FolderRunsInInt8) {
  const fs::path folder = image_folder(5), path = int8_folder();
  const Model model(path), fp32(path, {.precision = kernels::Precision::fp32});
  EXPECT_EQ(model.session().precision(), kernels::Precision::int8);
  const Images images(model, folder, 5);
  const std::vector<float> logits = values(model.logits(images.views));
  EXPECT_EQ(logits, array_of("classify", path, folder, "--logits"));
  EXPECT_NE(logits, values(fp32.logits(images.views)));
  EXPECT_EQ(values(fp32.logits(images.views)), array_of("classify", path, folder, "--logits", {"--precision", "fp32"}));
}

TEST(Model, ItsFeaturesEqualTheProgramsBitForBit) {
  const fs::path folder = image_folder(3), path = small_model();
  const Model model(path);
  const Images images(model, folder, 3);
  EXPECT_EQ(values(model.embed(images.views)), array_of("embed", path, folder, "-o"));
  EXPECT_EQ(values(model.embed(images.views, {.tokens = infer::Tokens::patch, .layers = {0}, .final_norm = false})),
            array_of("embed", path, folder, "-o", {"--tokens", "patch", "--layer", "0", "--no-norm"}));
  const Tensor normalized = model.embed(images.views, {.l2_normalize = true});
  EXPECT_EQ(values(normalized), array_of("embed", path, folder, "-o", {"--normalize"}));
  EXPECT_EQ(values(model.embed(images.views[1])), values(model.embed(images.views).select(0, 1)));
}

TEST(Model, ItsPredictionsEqualThePrograms) {
  const fs::path image = image_folder(1) / "a.png", labels = scratch_folder() / "labels.txt";
  std::ofstream(labels) << "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
  const ProgramResult result =
      run_program({"classify", "-m", small_model(), image, "--labels", labels, "--top", "3", "--format", "json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json want = json_lines(result.out).at(0).at("predictions");
  const Model model(small_model(), {.labels = labels});
  const std::vector<Prediction> got = model.classify(model.read(image), 3);
  ASSERT_EQ(got.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].index, want[i].at("index"));
    EXPECT_EQ(got[i].label, want[i].at("label"));
    EXPECT_FLOAT_EQ(got[i].probability, want[i].at("probability").get<float>());
  }
  EXPECT_EQ(Model(small_model()).class_name(7), "class 7");
  EXPECT_THROW(Model(fixture("models/timm_num_classes_0")).classify(model.read(image)), Error);
}

TEST(Model, OnePassGivesLogitsAndFeatures) {
  const fs::path folder = image_folder(3);
  for (const char* name : {"timm_token", "timm_avg", "timm_distilled", "timm_pre_logits_tanh", "timm_token_fc_norm"}) {
    const Model model(fixture(str("models/", name)));
    const Images images(model, folder, 3);
    const auto [logits, features] = model.logits_and_features(images.views);
    EXPECT_EQ(values(logits), values(model.logits(images.views))) << name;
    EXPECT_EQ(values(features), values(model.embed(images.views))) << name;
    const infer::Request first_block{.output = infer::Output::logits_and_features, .features = {.layers = {0}}};
    EXPECT_THROW(model.run(images.views, first_block), Error);  // the head does not read that block
  }
}

// The number of threads of this process.
int64_t num_tasks() {
  std::error_code error;
  return std::distance(fs::directory_iterator("/proc/self/task", error), fs::directory_iterator());
}

// Workers live as long as the thread that leads them.
TEST(Model, TheNumberOfThreadsHoldsWhileLoading) {
  const auto started_by_loading = [](int threads) {
    int64_t started = 0;
    std::thread([&] {
      const int64_t before = num_tasks();
      const Model model(small_model(), {.threads = threads});
      started = num_tasks() - before;
    }).join();
    return started;
  };
  EXPECT_EQ(started_by_loading(1), 0);
  EXPECT_LE(started_by_loading(3), 2);
}

// Each map is a part of the attention weights that the program writes.
TEST(Model, AttentionIsTheRowOfTheClassTokenOrOfThePatchOfTheQuery) {
  const fs::path image = image_folder(1) / "a.png";
  const Model model(small_model());
  const Image pixels = model.read(image);
  const std::vector<float> raw = array_of("attention", small_model(), image, "--raw");  // [blocks, H, N, N]
  const auto& vit = model.config().vit;
  const int64_t patches = (vit.img_size[0] / vit.patch_size[0]) * (vit.img_size[1] / vit.patch_size[1]);
  const int64_t tokens = patches + 1, heads = vit.num_heads;
  const auto row = [&](int64_t layer, int64_t head, int64_t token = 0) {
    const auto first = raw.begin() + ((layer * heads + head) * tokens + token) * tokens + 1;
    return std::vector<float>(first, first + patches);
  };
  EXPECT_EQ(values(model.attention(pixels, {.layer = 0, .head = 1})), row(0, 1));
  std::vector<float> mean(static_cast<size_t>(patches));
  for (int64_t h = 0; h < heads; ++h) {
    const std::vector<float> one = row(vit.depth - 1, h);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += one[i] / static_cast<float>(heads);
  }
  const std::vector<float> got = values(model.attention(pixels));
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(got[i], mean[i], 1e-6);
  EXPECT_NE(values(model.attention(pixels, {.rollout = true})), got);
  EXPECT_THROW(model.attention(pixels, {.head = heads}), Error);

  // The pixel at the middle of each patch, in the region that the model sees.
  const image::Region region = image::visible_region(model.transform(), pixels.width, pixels.height);
  const int64_t side = vit.img_size[0] / vit.patch_size[0];
  for (int64_t patch = 0; patch < patches; ++patch) {
    const auto middle = [&](int64_t index, double begin, double end) {
      return static_cast<int64_t>(begin +
                                  (static_cast<double>(index) + 0.5) / static_cast<double>(side) * (end - begin));
    };
    const std::array<int64_t, 2> at{middle(patch % side, region.left, region.right),
                                    middle(patch / side, region.top, region.bottom)};
    EXPECT_EQ(values(model.attention(pixels, {.layer = 0, .head = 1, .query = at})), row(0, 1, 1 + patch)) << patch;
  }
  EXPECT_THROW(model.attention(pixels, {.query = {{pixels.width, 0}}}), Error);
  EXPECT_THROW(model.attention(pixels, {.query = {{0, -1}}}), Error);
}

// The steps of this processor neither resize nor crop, so that images of several sizes have inputs of several sizes.
fs::path model_without_resize() {
  const fs::path folder = scratch_folder() / "model";
  fs::copy(fixture("models/timm_dynamic"), folder, fs::copy_options::recursive);
  std::ofstream(folder / "preprocessor_config.json") << R"({"do_resize": false, "do_center_crop": false,
    "do_rescale": true, "do_normalize": true, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
    "resample": 3, "image_processor_type": "ViTImageProcessor"})";
  auto config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config.erase("pretrained_cfg");
  std::ofstream(folder / "config.json") << config;
  return folder;
}

TEST(Model, ImagesOfSeveralInputSizesRunInSeveralBatches) {
  const Model model(model_without_resize());
  const auto& patch = model.config().vit.patch_size;
  const Image small = image::make_image(4 * patch[1], 4 * patch[0], 3),
              wide = image::make_image(6 * patch[1], 4 * patch[0], 3);
  const std::vector<ImageView> views{small, small, wide, small};
  const std::vector<std::vector<Prediction>> all = model.classify(views, 1);
  ASSERT_EQ(all.size(), 4U);
  for (size_t i = 0; i < views.size(); ++i) {
    EXPECT_EQ(all[i][0].index, model.classify(views[i], 1)[0].index);
    EXPECT_EQ(all[i][0].probability, model.classify(views[i], 1)[0].probability);
  }
  EXPECT_THROW(model.preprocess(views), Error);
  EXPECT_THROW(model.classify(std::span<const ImageView>()), Error);
}

// Each pixel belongs to the patch that contains its centre.
TEST(Model, ThePatchOfAPixelContainsItsCentreAndOthersAreNotSeen) {
  const Model square(small_model()), tall(fixture("models/timm_non_square")), whole(model_without_resize());
  for (const auto& [model, width, height] : {std::tuple(&square, 20, 30), std::tuple(&square, 100, 41),
                                             std::tuple(&tall, 33, 20), std::tuple(&whole, 24, 16)}) {
    const auto& vit = model->config().vit;
    const auto [input_height, input_width] = image::output_size(model->transform(), width, height);
    const std::array<int64_t, 2> grid{input_height / vit.patch_size[0], input_width / vit.patch_size[1]};
    const image::Region region = image::visible_region(model->transform(), width, height);
    const auto cell_of = [](int64_t pixel, double begin, double end, int64_t cells) {
      const double centre = static_cast<double>(pixel) + 0.5, size = (end - begin) / static_cast<double>(cells);
      int64_t cell = -1;
      for (int64_t i = 0; i < cells; ++i) {
        const double first = begin + static_cast<double>(i) * size;
        if (centre >= first && centre < first + size) cell = i;
      }
      return cell;
    };
    int64_t unseen = 0;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const std::array<int64_t, 2> want{cell_of(y, region.top, region.bottom, grid[0]),
                                          cell_of(x, region.left, region.right, grid[1])};
        if (want[0] >= 0 && want[1] >= 0) {
          EXPECT_EQ(model->patch_at({x, y}, width, height), want) << x << "," << y;
        } else {
          ++unseen;
          EXPECT_THROW(model->patch_at({x, y}, width, height), Error) << x << "," << y;
        }
      }
    }
    EXPECT_EQ(unseen == 0, model == &whole);
    EXPECT_THROW(model->patch_at({width, 0}, width, height), Error);
    EXPECT_THROW(model->patch_at({0, height}, width, height), Error);
  }
}

TEST(Model, AGreyModelTakesColorsAndAColorModelGrey) {
  const fs::path color = image_folder(1) / "a.png";
  const Image rgb = image::read_image(color), grey = image::read_image(color, {.mode = image::ColorMode::grey});
  const Model grey_model(fixture("models/timm_gray")), color_model(small_model());
  const auto input = [](const Model& model, const ImageView& view) { return values(model.preprocess({&view, 1})); };
  EXPECT_EQ(input(grey_model, rgb), input(grey_model, grey));
  EXPECT_EQ(input(color_model, grey), input(color_model, image::to_image(grey, image::ColorMode::rgb)));
}

TEST(Model, ARunsFolderAndOverridesAreTaken) {
  const fs::path run = scratch_folder() / "run", image = image_folder(1) / "a.png";
  fs::create_directories(run);
  std::ofstream(run / "recipe.json") << "{}";
  fs::copy(small_model(), run / "model", fs::copy_options::recursive);
  const Model model(run);
  EXPECT_EQ(run_program({"inspect", "-m", run}).status, 0);

  const fs::path array = scratch_folder() / "logits.npy";
  ASSERT_EQ(run_program({"classify", "-m", run, image, "--logits", array, "--mean", "0.1", "--crop-pct", "0.5",
                         "--interpolation", "nearest", "--crop-mode", "border"})
                .status,
            0);
  const Model other(run, {.load = {.preprocessing = {.mean = std::vector<double>{0.1},
                                                     .interpolation = "nearest",
                                                     .crop_mode = "border",
                                                     .crop_pct = 0.5}}});
  const Image pixels = model.read(image);
  EXPECT_EQ(values(other.logits(std::vector<ImageView>{pixels})), read_npy(array).f32);
  EXPECT_NE(values(model.logits(std::vector<ImageView>{pixels})), read_npy(array).f32);
  EXPECT_THROW(Model(run, {.load = {.preprocessing = {.crop_pct = 5}}}), Error);
}

TEST(Model, ConcurrentCallsGiveTheSameResults) {
  const Model model(small_model());
  const Images images(model, image_folder(4), 4);
  const std::vector<float> want = values(model.logits(images.views));
  std::vector<std::vector<float>> got(4);
  std::vector<std::thread> threads;
  for (auto& result : got) threads.emplace_back([&] { result = values(model.logits(images.views)); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : got) EXPECT_EQ(result, want);
}

// "do_resize": false: the images have the model's size, or are to blame.
TEST(Model, WithoutAResizeImagesNeedTheModelsSize) {
  const fs::path folder = scratch_folder();
  fs::copy(fixture("models/hf_vit"), folder, fs::copy_options::recursive);
  std::ofstream(folder / "preprocessor_config.json")
      << R"({"do_resize": false, "resample": 2, "image_mean": 0.5, "image_std": 0.5})";
  const Model model(folder);
  const std::vector<uint8_t> pixels(3 * 16 * 20, 128);
  const auto image_of = [&](int64_t height) { return ImageView(pixels.data(), 16, height, image::PixelFormat::rgb); };
  EXPECT_EQ(model.classify(image_of(16)).size(), 5u);
  EXPECT_TRUE(contains(error_of([&] { model.classify(image_of(20)); }), "expected an image of 16×16, got 20×16"));
}

// Sizes are width × height, and the patch has to divide both.
TEST(Model, ErrorsOfThePreprocessingsSizeNameBothSizes) {
  const auto message_of = [](const std::string& name, std::vector<int64_t> size) {
    const fs::path folder = with_config(name, [&](nlohmann::json& config) {
      config["pretrained_cfg"]["input_size"] = {3, size[0], size[1]};
    });
    const std::string message = error_of([&] { const Model model(folder); });
    return message.substr(message.find(": expected") + 2);
  };
  EXPECT_EQ(message_of("timm_token", {32, 40}),
            "expected preprocessing to inputs of 32×32, as the model has positions for, got 40×32; another image size "
            "interpolates them (--image-size)");
  for (const auto& [height, width] : {std::pair(26, 16), std::pair(24, 20), std::pair(22, 12)}) {
    EXPECT_EQ(message_of("timm_non_square", {height, width}),
              str("expected preprocessing to inputs that the patch size 8×4 divides, got ", width, "×", height));
  }
  const fs::path larger = with_config("timm_non_square", [](nlohmann::json& config) {
    config["pretrained_cfg"]["input_size"] = {3, 28, 24};
  });
  EXPECT_NO_THROW(Model{larger});
}

TEST(Model, ErrorsOfImagesNameTheFirstThatDoesNotFit) {
  const Model model(model_without_resize());
  const auto& patch = model.config().vit.patch_size;
  const Image small = image::make_image(4 * patch[1], 4 * patch[0], 3),
              wide = image::make_image(6 * patch[1], 4 * patch[0], 3);
  const auto message_of = [&](const std::vector<ImageView>& views) {
    return error_of([&] { model.preprocess(views); });
  };
  EXPECT_EQ(message_of({small, wide}),
            "model: expected images whose inputs have one size, got another size from image 1 on");
  EXPECT_EQ(message_of({small, small, wide, small}),
            "model: expected images whose inputs have one size, got another size from image 2 on");
  EXPECT_EQ(message_of({}), "model: expected at least one image, got none");
  EXPECT_EQ(error_of([&] { model.logits({}); }), "model: expected at least one image, got none");
  const Tensor batch = model.preprocess(std::vector<ImageView>{wide, wide});
  EXPECT_EQ(batch.shape(), (Shape{2, 3, 4 * patch[0], 6 * patch[1]}));
}

// Results of several batches are in the order of the images, and each has all results of the request.
TEST(Model, ResultsOfSeveralSizesAreInTheOrderOfTheImages) {
  const Model model(model_without_resize());
  const auto& patch = model.config().vit.patch_size;
  std::vector<Image> images;
  for (const int64_t columns : {4, 6, 6, 4, 5}) {
    Image& image = images.emplace_back(image::make_image(columns * patch[1], 4 * patch[0], 3));
    for (size_t i = 0; i < image.pixels.size(); ++i)
      image.pixels[i] = static_cast<uint8_t>(i * (31 + 7 * images.size()) % 251);
  }
  const std::vector<ImageView> views(images.begin(), images.end());
  const auto [logits, features] = model.logits_and_features(views);
  ASSERT_EQ(logits.shape(), (Shape{5, 10}));
  ASSERT_EQ(features.size(0), 5);
  for (size_t i = 0; i < views.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    EXPECT_EQ(values(logits.select(0, row)), values(model.logits({&views[i], 1}).select(0, 0))) << i;
    EXPECT_EQ(values(features.select(0, row)), values(model.embed(views[i]))) << i;
  }
}

TEST(Model, ReadsInItsOwnColorModeWhateverTheOptionsSay) {
  const fs::path color = image_folder(1) / "a.png";
  const Model grey_model(fixture("models/timm_gray")), color_model(small_model());
  std::ifstream in(color, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  for (const image::ColorMode mode : {image::ColorMode::grey, image::ColorMode::rgb}) {
    EXPECT_EQ(grey_model.read(color, {.mode = mode}).channels, 1);
    EXPECT_EQ(grey_model.decode(bytes, {.mode = mode}).channels, 1);
    EXPECT_EQ(color_model.read(color, {.mode = mode}).channels, 3);
    EXPECT_EQ(color_model.decode(bytes, {.mode = mode}).channels, 3);
  }
  EXPECT_EQ(color_model.decode(bytes).pixels, color_model.read(color).pixels);
  const fs::path turned = fixture("image/decode/exif_6.png");
  EXPECT_NE(color_model.read(turned, {.apply_exif = true}).width, color_model.read(turned).width);
  EXPECT_TRUE(error_of([&] { color_model.decode(bytes.first(3)); }).starts_with("image: "));
}

// Logits by hand: their softmax, or each one's sigmoid, the largest first.
TEST(Model, PredictionsAreTheLargestLogitsWithTheModelsProbabilities) {
  const fs::path several =
      with_config("timm_token", [](nlohmann::json& c) { c["problem_type"] = "multi_label_classification"; });
  const fs::path labels = scratch_folder() / "labels.txt";
  std::ofstream(labels) << "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
  const std::vector<float> logits{0, -1, 2, 0, 0, 1, 0, 0, 0, -3};
  double sum = 6;
  for (const double logit : {-1.0, 2.0, 1.0, -3.0}) sum += std::exp(logit);
  for (const bool sigmoid : {false, true}) {
    const Model model(sigmoid ? several : fs::path(small_model()), {.labels = labels});
    const std::vector<Prediction> got = model.predictions(logits, 3, "photo.png");
    ASSERT_EQ(got.size(), 3U);
    const std::pair<int64_t, double> want[] = {{2, 2}, {5, 1}, {0, 0}};
    for (size_t i = 0; i < 3; ++i) {
      const auto& [index, logit] = want[i];
      EXPECT_EQ(got[i].index, index);
      EXPECT_EQ(got[i].label, std::string(1, static_cast<char>('a' + index)));
      EXPECT_NEAR(got[i].probability, sigmoid ? 1 / (1 + std::exp(-logit)) : std::exp(logit) / sum, 1e-6);
    }
    EXPECT_EQ(model.class_name(9), "j");
    EXPECT_EQ(model.class_names().size(), 10U);
    const std::vector<float> wrong(10, NAN);
    EXPECT_TRUE(error_of([&] { model.predictions(wrong, 1, "photo.png"); }).starts_with("photo.png: "));
  }
}

// Five classes unless another number is asked for; each image has its own.
TEST(Model, ClassifiesEachOfSeveralImages) {
  const Model model(small_model());
  const Images images(model, image_folder(3), 3);
  const std::vector<std::vector<Prediction>> all = model.classify(images.views);
  ASSERT_EQ(all.size(), 3U);
  const Tensor logits = model.logits(images.views);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(all[i].size(), 5U);
    const float* row = logits.data<float>() + 10 * i;
    EXPECT_EQ(all[i][0].index, std::max_element(row, row + 10) - row) << i;
    EXPECT_EQ(model.classify(images.views[i]).size(), 5U);
    EXPECT_EQ(model.classify(images.views[i], 7).size(), 7U);
    EXPECT_EQ(model.classify(images.views[i], 7)[0].index, all[i][0].index);
  }
}

TEST(Model, RolloutAndHeadsAreThoseOfItsSession) {
  const Model model(small_model());
  const Image pixels = model.read(image_folder(1) / "a.png");
  const ImageView view(pixels);
  std::vector<Tensor> blocks;
  for (const Tensor& block :
       model.session().run(model.preprocess({&view, 1}), {.output = infer::Output::attention, .all_layers = true}))
    blocks.push_back(block.select(0, 0));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(values(model.attention(pixels, {.rollout = true})),
            values(analysis::patch_attention(analysis::attention_rollout(blocks), 0, 1, {4, 4})));
  for (const int64_t layer : {0, 1, -1, -2}) {
    const Tensor& block = blocks[static_cast<size_t>(layer < 0 ? layer + 2 : layer)];
    for (const int64_t head : {0, 1}) {
      EXPECT_EQ(values(model.attention(pixels, {.layer = layer, .head = head})),
                values(analysis::patch_attention(block.select(0, head), 0, 1, {4, 4})));
    }
    EXPECT_EQ(values(model.attention(pixels, {.layer = layer})),
              values(analysis::patch_attention(analysis::mean_over_heads(block), 0, 1, {4, 4})));
  }
  EXPECT_EQ(values(model.attention(pixels)), values(model.attention(pixels, {.layer = 1})));
  EXPECT_EQ(error_of([&] { model.attention(pixels, {.head = 2}); }), "head: expected a head index from 0 to 1, got 2");
  EXPECT_EQ(error_of([&] { model.attention(pixels, {.head = -1}); }),
            "head: expected a head index from 0 to 1, got -1");
}

TEST(Model, WithoutAClassTokenItsAttentionIsTheMeanOverTheTokens) {
  const Model model(fixture("models/timm_avg_no_class_token"));
  const Image pixels = model.read(image_folder(1) / "a.png");
  const ImageView view(pixels);
  const Tensor block =
      model.session().run(model.preprocess({&view, 1}), {.output = infer::Output::attention, .layer = 0})[0].select(0,
                                                                                                                    0);
  EXPECT_EQ(values(model.attention(pixels, {.layer = 0, .head = 2})),
            values(analysis::patch_attention(block.select(0, 2), std::nullopt, 0, {4, 4})));
}

TEST(Model, APixelThatItDoesNotSeeIsNamedWithThoseThatItSees) {
  const Model model(small_model());  // scales the shorter side to 35 pixels and keeps 32 × 32 in the middle
  const image::Region region = image::visible_region(model.transform(), 100, 41);
  const std::string seen = str("query: expected a pixel that the model sees: X from ", std::lround(region.left), " to ",
                               std::lround(region.right) - 1, ", Y from ", std::lround(region.top), " to ",
                               std::lround(region.bottom) - 1, ", got ");
  EXPECT_GT(std::lround(region.left), 20);
  EXPECT_LT(std::lround(region.top), 5);
  EXPECT_EQ(error_of([&] { model.patch_at({2, 20}, 100, 41); }), seen + "2,20");
  EXPECT_EQ(error_of([&] { model.patch_at({50, 41}, 100, 41); }), seen + "50,41");
}

TEST(Model, ItsOptionsReachItsSession) {
  const Images images(Model(small_model()), image_folder(2), 2);
  const auto logits_of = [&](const fs::path& path, const ModelOptions& options) {
    return values(Model(path, options).logits(images.views));
  };
  EXPECT_EQ(Model(small_model(), {.threads = 3}).session().threads(), 3);
  EXPECT_NE(logits_of(small_model(), {.merged_per_block = 3}), logits_of(small_model(), {}));
  const std::vector<std::string> layers{"blocks.0.mlp.fc1", "blocks.1.attn.qkv"};
  const fs::path none =
      with_config("timm_token", [](nlohmann::json& c) { c["int8"]["excluded"] = nlohmann::json::array(); });
  const fs::path some = with_config("timm_token", [&](nlohmann::json& c) { c["int8"]["excluded"] = layers; });
  EXPECT_NE(logits_of(some, {}), logits_of(none, {}));
  const infer::Session session(models::build_model(models::open_model(small_model())),
                               {.precision = kernels::Precision::int8, .excluded_layers = layers});
  EXPECT_EQ(logits_of(some, {}), values(session.logits(Model(small_model()).preprocess(images.views))));
}

}  // namespace
}  // namespace vitrail::testing
