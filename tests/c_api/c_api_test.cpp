// SPDX-License-Identifier: Apache-2.0
// The C interface against vitrail::Model and vitrail::DualModel, whose results it has to give bit for bit.
#include "vitrail/c_api.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "tests/c_api/handles.h"
#include "tests/train/contrastive_fixture.h"

#include "vitrail/base/read_file.h"
#include "vitrail/image/decode.h"
#include "vitrail/models/class_gradients.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/pipeline/model.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/predictor.h"
#include "vitrail/sam/prompt_file.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;

TEST(CApi, GivesTheResultsOfModelBitForBit) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  OwnedTensor logits, features, grid, map, input, output;
  EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
  expect_same(logits, model.logits(in.views));
  EXPECT_OK(vitrail_embed(handle, in.handles.data(), 2, nullptr, &features));
  expect_same(features, model.embed(in.views));
  vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
  options.tokens = VITRAIL_TOKENS_GRID;
  options.layer = 0;
  options.skip_norm = options.l2_normalize = 1;
  EXPECT_OK(vitrail_embed(handle, in.handles.data(), 2, &options, &grid));
  expect_same(
      grid,
      model.embed(in.views, {.tokens = infer::Tokens::grid, .layers = {0}, .final_norm = false, .l2_normalize = true}));
  vitrail_attention_options attention = VITRAIL_ATTENTION_OPTIONS_INIT;
  attention.head = 0;
  EXPECT_OK(vitrail_attention(handle, in.a, &attention, &map));
  expect_same(map, model.attention(in.views[0], {.head = 0}));
  EXPECT_OK(vitrail_preprocess(handle, in.handles.data(), 2, &input));
  expect_same(input, model.preprocess(in.views));
  EXPECT_OK(vitrail_forward(handle, vitrail_tensor_data(input), vitrail_tensor_shape(input), &output));
  expect_same(output, model.logits(in.views));
}

TEST(CApi, Classifies) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  EXPECT_EQ(vitrail_model_num_classes(handle), 10);
  EXPECT_EQ(vitrail_model_class_name(handle, 3), model.class_name(3));
  EXPECT_EQ(vitrail_model_class_name(handle, 10), nullptr);
  EXPECT_EQ(nlohmann::json::parse(vitrail_model_config(handle))["architecture"], model.config().architecture);
  for (const int64_t top : {3, 50}) {  // 50: more than there are classes
    std::vector<vitrail_prediction> predictions(static_cast<size_t>(2 * top));
    int64_t written = 0;
    EXPECT_OK(vitrail_classify(handle, in.handles.data(), 2, top, predictions.data(), &written));
    ASSERT_EQ(written, std::min<int64_t>(top, 10));
    const auto want = model.classify(in.views, top);
    for (size_t i = 0; i < static_cast<size_t>(2 * written); ++i) {
      const Prediction& expected = want[i / static_cast<size_t>(written)][i % static_cast<size_t>(written)];
      EXPECT_EQ(predictions[i].index, expected.index);
      EXPECT_EQ(predictions[i].probability, expected.probability);
      EXPECT_EQ(predictions[i].label, expected.label);
    }
  }
}

TEST(CApi, GivesTheGradientsOfAClass) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  const models::VisionTransformer vit = models::build_model(models::open_model(small_model()));
  const Tensor input = model.preprocess({in.views.data(), 1});
  const char* const values[] = {"images", "embedded"};
  for (const int64_t target : {3, -1}) {
    OwnedTensor pixels, tokens;
    vitrail_tensor* gradients[2] = {};
    EXPECT_OK(vitrail_gradients(handle, in.a, target, values, 2, gradients));
    pixels.handle = gradients[0], tokens.handle = gradients[1];
    models::ClassGradientOptions options{.target = {}, .values = {"images", "embedded"}};
    if (target >= 0) options.target = target;
    const std::vector<Tensor> want = models::class_gradients(vit, input, options);
    expect_same(pixels, want[0].select(0, 0));
    expect_same(tokens, want[1].select(0, 0));
  }
}

TEST(CApi, RefusesGradientsThatThereAreNot) {
  const fs::path int8 = scratch_folder() / "int8";
  const ProgramResult converted = run_program(
      {"convert", small_model(), "-o", int8, "--dtype", "int8", "--calibrate", image_folder(2), "--tolerance", "0.05"});
  ASSERT_EQ(converted.status, 0) << converted.err;
  const auto refusal = [](const fs::path& path, int64_t target, const char* value, size_t count = 1) {
    OwnedModel handle;
    EXPECT_OK(vitrail_model_open(path.c_str(), nullptr, &handle));
    OwnedImage image;
    const uint8_t pixels[3 * 16 * 16] = {};
    EXPECT_OK(vitrail_image_view(pixels, sizeof pixels, 16, 16, 0, VITRAIL_RGB, &image));
    vitrail_tensor* gradient = nullptr;
    const std::string message = message_of(vitrail_gradients(handle, image, target, &value, count, &gradient));
    EXPECT_EQ(gradient, nullptr);
    return message;
  };
  EXPECT_EQ(refusal(small_model(), 10, "images"), "target: expected a class from 0 to 9, got 10");
  EXPECT_EQ(refusal(small_model(), 1, "images", 0), "values: expected at least one name, got none");
  EXPECT_EQ(refusal(small_model(), 1, nullptr), "values: expected a pointer, got NULL");
  EXPECT_TRUE(contains(refusal(small_model(), 1, "no.such"), "values: expected \"images\", or a name that"));
  EXPECT_TRUE(contains(refusal(int8, 1, "images"), "expected weights in fp32 or 16 bits, for gradients"));
  EXPECT_TRUE(contains(refusal(fixture("models/hf_clip"), 1, "images"), "expected a model with a classifier"));
  EXPECT_TRUE(contains(refusal(sam_fixture("padded_windows").model, 1, "images"), "expected a Vision Transformer"));
}

// The files of a folder in memory; their texts may be empty.
struct FolderInMemory {
  std::string weights, config, preprocessor;
  vitrail_model_bytes bytes = VITRAIL_MODEL_BYTES_INIT;

  explicit FolderInMemory(const fs::path& folder) {
    const auto text = [&](const char* name) { return fs::exists(folder / name) ? read_text_file(folder / name) : ""; };
    weights = text("model.safetensors");
    config = text("config.json");
    preprocessor = text("preprocessor_config.json");
    bytes.weights = weights.data();
    bytes.weights_size = weights.size();
    bytes.config = config.empty() ? nullptr : config.c_str();
    bytes.preprocessor = preprocessor.empty() ? nullptr : preprocessor.c_str();
  }
};

TEST(CApi, OpensAModelFromBytes) {
  const FolderInMemory folder(small_model());
  OwnedModel model, from_files;
  ASSERT_EQ(message_of(vitrail_model_open_bytes(&folder.bytes, nullptr, &model)), "");
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &from_files)), "");
  EXPECT_STREQ(vitrail_model_config(model), vitrail_model_config(from_files));
  EXPECT_STREQ(vitrail_model_class_name(model, 3), vitrail_model_class_name(from_files, 3));
  const Model expected(small_model());
  const Inputs in(expected, model);
  OwnedTensor logits;
  EXPECT_OK(vitrail_logits(model, in.handles.data(), 2, &logits));
  expect_same(logits, expected.logits(in.views));
}

// A dual model's tokenizer is in files; without it the model takes images alone.
TEST(CApi, OpensADualModelFromBytes) {
  const std::string path = fixture("models/hf_clip");
  const FolderInMemory folder(path);
  const DualModel expected(path);
  OwnedModel images, both;
  ASSERT_EQ(message_of(vitrail_model_open_bytes(&folder.bytes, nullptr, &images)), "");
  EXPECT_EQ(vitrail_model_has_text(images), 0);
  const Inputs in(expected.images(), images);
  OwnedTensor features, texts;
  EXPECT_OK(vitrail_embed(images, in.handles.data(), 2, nullptr, &features));
  expect_same(features, expected.images().embed(in.views));
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.tokenizer = path.c_str();
  ASSERT_EQ(message_of(vitrail_model_open_bytes(&folder.bytes, &options, &both)), "");
  const char* const cat = "a cat";
  EXPECT_OK(vitrail_embed_texts(both, &cat, 1, &texts));
  expect_same(texts, expected.embed_texts({"a cat"}));
}

TEST(CApi, OpensSegmentAnythingFromBytes) {
  const SamFixture fixture = sam_fixture("transformers");
  const FolderInMemory folder(fixture.model.parent_path());
  const sam::Predictor predictor(fixture.model);
  const sam::Masks want = predictor.predict(predictor.embed(fixture.image), {.points = {{30, 20, 1}}});
  OwnedModel model;
  ASSERT_EQ(message_of(vitrail_model_open_bytes(&folder.bytes, nullptr, &model)), "");
  OwnedImage image;
  OwnedEmbedding embedding;
  OwnedTensor logits;
  const image::Image& pixels = fixture.image;
  EXPECT_OK(vitrail_image_view(pixels.pixels.data(), pixels.pixels.size(), pixels.width, pixels.height, 0, VITRAIL_RGB,
                               &image));
  EXPECT_OK(vitrail_segment_embed(model, image, &embedding));
  const double point[] = {30, 20};
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  prompt.points = point;
  prompt.num_points = 1;
  EXPECT_OK(vitrail_segment(model, embedding, &prompt, nullptr, nullptr, &logits));
  expect_same(logits, want.logits);
}

TEST(CApi, RefusesBytesThatAreNoModel) {
  FolderInMemory folder(small_model());
  OwnedModel model;
  const auto refusal = [&] { return message_of(vitrail_model_open_bytes(&folder.bytes, nullptr, &model)); };
  EXPECT_EQ(message_of(vitrail_model_open_bytes(nullptr, nullptr, &model)), "bytes: expected a pointer, got NULL");
  EXPECT_EQ(message_of(vitrail_model_open_bytes(&folder.bytes, nullptr, nullptr)),
            "model: expected a pointer, got NULL");
  folder.bytes.config = nullptr;
  EXPECT_EQ(refusal(), "model: expected the text of a config.json, or the name of an architecture, got neither");
  folder.bytes.weights_size -= 1;
  EXPECT_TRUE(refusal().starts_with("model: pos_embed: expected data inside the file")) << refusal();
  folder.bytes.weights = nullptr;
  EXPECT_EQ(refusal(), "weights: expected a pointer, got NULL");
  folder.bytes.struct_size = sizeof folder.bytes + 1;
  EXPECT_TRUE(refusal().starts_with("vitrail_model_bytes.struct_size: ")) << refusal();
  EXPECT_EQ(model.handle, nullptr);
}

TEST(CApi, ReadsFilesBytesAndPixelsAlike) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  const std::string bytes = read_text_file(in.folder / "a.png");
  OwnedImage decoded, view;
  EXPECT_OK(vitrail_image_decode(handle, bytes.data(), bytes.size(), 0, &decoded));
  const image::Image& pixels = in.pixels[0];
  const int64_t stride = pixels.width * 4 + 12;  // RGBA with padding at the end of each row but the last
  std::vector<uint8_t> padded(static_cast<size_t>(stride * (pixels.height - 1) + pixels.width * 4), 77);
  for (int64_t y = 0; y < pixels.height; ++y) {
    for (int64_t x = 0; x < pixels.width; ++x) {
      std::copy_n(pixels.row(y) + 3 * x, 3, padded.data() + y * stride + 4 * x);
    }
  }
  EXPECT_OK(vitrail_image_view(padded.data(), padded.size(), pixels.width, pixels.height, stride, VITRAIL_RGBA, &view));
  EXPECT_EQ(vitrail_image_width(view), pixels.width);
  EXPECT_EQ(vitrail_image_height(view), pixels.height);
  for (const vitrail_image* image : {decoded.handle, view.handle}) {
    OwnedTensor logits;
    EXPECT_OK(vitrail_logits(handle, &image, 1, &logits));
    expect_same(logits, model.logits({in.views.data(), 1}));
  }
  OwnedImage too_small;
  const std::string message = message_of(vitrail_image_view(padded.data(), padded.size() - 1, pixels.width,
                                                            pixels.height, stride, VITRAIL_RGBA, &too_small));
  EXPECT_TRUE(contains(message, str("expected ", padded.size(), " bytes"))) << message;
}

TEST(CApi, ReadsTheOrderOfTheChannels) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  const image::Image& pixels = in.pixels[0];
  struct Order {
    vitrail_pixel_format format;
    size_t channels, red, blue;
  };
  for (const Order& order :
       {Order{VITRAIL_RGB, 3, 0, 2}, {VITRAIL_BGR, 3, 2, 0}, {VITRAIL_RGBA, 4, 0, 2}, {VITRAIL_BGRA, 4, 2, 0}}) {
    std::vector<uint8_t> values(pixels.pixels.size() / 3 * order.channels, 77);
    for (size_t i = 0; i < pixels.pixels.size() / 3; ++i) {
      values[i * order.channels + order.red] = pixels.pixels[3 * i];
      values[i * order.channels + 1] = pixels.pixels[3 * i + 1];
      values[i * order.channels + order.blue] = pixels.pixels[3 * i + 2];
    }
    OwnedImage view;
    OwnedTensor logits;
    EXPECT_OK(vitrail_image_view(values.data(), values.size(), pixels.width, pixels.height,
                                 pixels.width * static_cast<int64_t>(order.channels), order.format, &view));
    const vitrail_image* const image = view;
    EXPECT_OK(vitrail_logits(handle, &image, 1, &logits));
    expect_same(logits, model.logits({in.views.data(), 1}));
  }
}

TEST(CApi, AppliesTheExifOrientationIfAsked) {
  const fs::path file = fixture("image/decode/exif_6.png");
  const std::string bytes = read_text_file(file);
  const image::Image stored = image::read_image(file), upright = image::read_image(file, {.apply_exif = true});
  ASSERT_NE(stored.width, upright.width);
  for (const int exif : {0, 1}) {
    OwnedImage read, decoded;
    EXPECT_OK(vitrail_image_read(nullptr, file.c_str(), exif, &read));
    EXPECT_OK(vitrail_image_decode(nullptr, bytes.data(), bytes.size(), exif, &decoded));
    for (const vitrail_image* image : {read.handle, decoded.handle})
      EXPECT_EQ(vitrail_image_width(image), exif ? upright.width : stored.width);
  }
}

TEST(CApi, EmbedsAndComparesTexts) {
  const std::string path = fixture("models/hf_clip");
  const DualModel model(path);
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(path.c_str(), nullptr, &handle)), "");
  EXPECT_EQ(vitrail_model_has_text(handle), 1);
  EXPECT_EQ(vitrail_model_num_classes(handle), 0);
  const Inputs in(model.images(), handle);
  const std::vector<std::string> labels{"cat", "dog"}, templates{"a photo of a {}", "a {}"};
  const std::array<const char*, 2> names{"cat", "dog"}, around{"a photo of a {}", "a {}"};
  OwnedTensor texts, probabilities;
  EXPECT_OK(vitrail_embed_texts(handle, names.data(), 2, &texts));
  expect_same(texts, model.embed_texts(labels));
  EXPECT_OK(vitrail_zeroshot(handle, in.handles.data(), 2, names.data(), 2, around.data(), 2, &probabilities));
  expect_same(probabilities,
              model.probabilities(model.logits(model.embed_images(in.views), model.embed_labels(labels, templates))));
  int64_t written = -7;
  vitrail_prediction prediction;
  const std::string message = message_of(vitrail_classify(handle, in.handles.data(), 1, 1, &prediction, &written));
  EXPECT_TRUE(contains(message, "a model with a classifier")) << message;
  EXPECT_EQ(written, -7);
}

TEST(CApi, AStatusHasThreeParts) {
  OwnedModel handle;
  vitrail_status* status = vitrail_model_open("/no/such/model", nullptr, &handle);
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(handle.handle, nullptr);
  EXPECT_EQ(vitrail_status_code(status), VITRAIL_INVALID);
  EXPECT_EQ(str(vitrail_status_where(status), ": expected ", vitrail_status_expected(status), ", got ",
                vitrail_status_got(status)),
            vitrail_status_message(status));
  EXPECT_TRUE(contains(vitrail_status_where(status), "/no/such/model")) << vitrail_status_where(status);
  vitrail_status_free(status);
  EXPECT_TRUE(contains(message_of(vitrail_model_open(nullptr, nullptr, &handle)), "path: expected a pointer"));
  EXPECT_TRUE(contains(message_of(vitrail_model_open(small_model().c_str(), nullptr, nullptr)), "model: expected"));
}

// A program that was compiled against an older header gives a smaller structure.
TEST(CApi, TakesOptionsOfAnOlderHeader) {
  vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
  options.struct_size = offsetof(vitrail_embed_options, layer);
  options.tokens = VITRAIL_TOKENS_CLS;
  options.layer = 99;  // beyond the structure that the caller knows
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  OwnedTensor features;
  EXPECT_OK(vitrail_embed(handle, in.handles.data(), 1, &options, &features));
  expect_same(features, model.embed({in.views.data(), 1}, {.tokens = infer::Tokens::cls}));
  options.struct_size = 1000;
  EXPECT_TRUE(contains(message_of(vitrail_embed(handle, in.handles.data(), 1, &options, &features)), "struct_size"));
}

TEST(CApi, ThreadsShareAModel) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  const Tensor want = model.logits(in.views);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int run = 0; run < 5; ++run) {
        OwnedTensor logits;
        EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
        expect_same(logits, want);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CApi, PassesWarningsOn) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(fixture("models/hf_clip").c_str(), nullptr, &handle)), "");
  std::string warning;
  vitrail_set_warning_callback([](const char* text, void* to) { *static_cast<std::string*>(to) = text; }, &warning);
  std::string words;
  for (int i = 0; i < 200; ++i) words += "cat ";
  const char* const text = words.c_str();
  OwnedTensor embeddings;
  EXPECT_OK(vitrail_embed_texts(handle, &text, 1, &embeddings));
  vitrail_set_warning_callback(nullptr, nullptr);
  EXPECT_TRUE(contains(warning, "tokens")) << warning;
}

// Counts the events of a run, and stops it at the first batch if asked to.
struct TrainEvents {
  std::map<vitrail_train_event, int> counts;
  std::string result;
  bool stop = false;

  static int on_event(vitrail_train_event event, const char* text, void* context) {
    auto& events = *static_cast<TrainEvents*>(context);
    ++events.counts[event];
    if (event == VITRAIL_TRAIN_RESULT) events.result = text;
    return events.stop && event == VITRAIL_TRAIN_PROGRESS ? 1 : 0;
  }
};

TEST(CApi, TrainingReportsEventsAndStopsWhenAsked) {
  const std::string recipe = train::write_recipe(train::parse_recipe(train::tiny_recipe(train::make_images(8, 2)), ""));
  const fs::path folder = scratch_folder() / "run";
  const char* const settings[] = {"epochs=1", "data.holdout=6"};
  TrainEvents events;
  events.stop = true;
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  options.threads = 1;
  options.settings = settings;
  options.num_settings = 2;
  options.on_event = TrainEvents::on_event;
  options.context = &events;
  int stopped = 0;
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(events.counts[VITRAIL_TRAIN_RESULT], 0);
  EXPECT_TRUE(contains(message_of(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped)), "resume"));
  events.stop = false;
  options.resume = 1;
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
  EXPECT_EQ(stopped, 0);
  EXPECT_EQ(events.counts[VITRAIL_TRAIN_EPOCH], 1);
  EXPECT_EQ(nlohmann::json::parse(events.result)["epochs"], 1);
  EXPECT_TRUE(fs::exists(folder / "model/model.safetensors"));
  EXPECT_TRUE(contains(message_of(vitrail_train("{\"epochss\": 1}", "x", nullptr, &stopped)), "epochss"));
  EXPECT_TRUE(contains(message_of(vitrail_train(nullptr, "x", nullptr, &stopped)), "source"));
}

TEST(CApi, APresetChoosesTheRecipeOfADataset) {
  const fs::path images = train::make_images(), runs = scratch_folder();
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  const std::string model = testing::source("models/cifar10-vit");
  options.model = model.c_str();
  options.preset = "probe";
  int stopped = 0;
  EXPECT_OK(vitrail_train(images.c_str(), (runs / "probe").c_str(), &options, &stopped));
  EXPECT_EQ(train::read_recipe(runs / "probe/recipe.json").objective, "probe");
}

TEST(CApi, TakesRiskySettingsIfForced) {
  const std::string recipe =
      train::write_recipe(train::contrastive_recipe_for(train::make_pairs(), {"optimizer.lr=3e-3", "epochs=1"}));
  const fs::path folder = scratch_folder() / "run";
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  int stopped = 0;
  EXPECT_TRUE(contains(message_of(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped)), "force"));
  options.force = 1;
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
}

TEST(CApi, AResumptionTakesChangesOnlyIfAllowed) {
  const std::string recipe = train::write_recipe(train::parse_recipe(train::tiny_recipe(train::make_images(8, 2)), ""));
  const fs::path folder = scratch_folder() / "run";
  std::vector<const char*> settings{"epochs=1", "data.holdout=6"};
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  options.threads = 1;
  options.settings = settings.data();
  options.num_settings = settings.size();
  int stopped = 0;
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
  settings.push_back("clip=0.5");
  options.settings = settings.data();
  options.num_settings = settings.size();
  options.resume = 1;
  EXPECT_TRUE(contains(message_of(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped)), "clip"));
  options.allow_changes = 1;
  const Warnings warnings;
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
}

TEST(CApi, SegmentsAsThePredictorBitForBit) {
  const Segmenter by;
  const std::array<double, 4> points{30, 20, 5.5, 50};
  const std::array<int, 2> labels{1, 0};
  const std::array<double, 4> box{3, 4, 60, 50};
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  prompt.points = points.data();
  prompt.labels = labels.data();
  prompt.num_points = 2;
  prompt.box = box.data();
  OwnedTensor masks, iou, logits, refined;
  EXPECT_OK(vitrail_segment(by.model, by.handle, &prompt, &masks, &iou, &logits));
  const sam::Prompt want{.points = {{30, 20, 1}, {5.5, 50, 0}}, .box = sam::Box{3, 4, 60, 50}};
  const sam::Masks result = by.predictor.predict(by.embedding, want);
  expect_same(logits, result.logits);
  expect_same(iou, Tensor::from<float>({3}, result.iou));
  const Tensor full = Tensor::empty({3, 60, 90});
  for (int64_t m = 0; m < 3; ++m) {
    const sam::BinaryMask mask = sam::threshold(by.predictor.image_logits(result.logits.select(0, m), 90, 60));
    std::ranges::copy(mask.pixels, full.data<float>() + m * 60 * 90);
  }
  expect_same(masks, full);
  vitrail_prompt mask = VITRAIL_PROMPT_INIT;
  mask.mask_logits = vitrail_tensor_data(logits);
  mask.mask_size = 40;
  mask.single = 1;
  EXPECT_OK(vitrail_segment(by.model, by.handle, &mask, nullptr, nullptr, &refined));
  expect_same(
      refined,
      by.predictor.predict(by.embedding, {.mask_logits = result.logits.select(0, 0).contiguous(), .multimask = false})
          .logits);
}

TEST(CApi, AMaskOfTheImagesSizeIsAPrompt) {
  const Segmenter by;
  sam::BinaryMask object = sam::make_mask(90, 60);
  for (int64_t y = 10; y < 40; ++y) std::fill_n(object.row(y) + 20, 50, uint8_t{255});
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  prompt.mask = object.pixels.data();
  prompt.mask_width = 90;
  prompt.mask_height = 60;
  OwnedTensor logits;
  EXPECT_OK(vitrail_segment(by.model, by.handle, &prompt, nullptr, nullptr, &logits));
  for (uint8_t& pixel : object.pixels) pixel = pixel != 0 ? 1 : 0;
  expect_same(logits, by.predictor.predict(by.embedding, {.mask_logits = sam::logits_of(object, 40)}).logits);
}

TEST(CApi, SegmentationRefusesWhatMakesNoSense) {
  const Segmenter by;
  OwnedTensor masks;
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  const auto refused = [&](const std::string& message) {
    const std::string got = message_of(vitrail_segment(by.model, by.handle, &prompt, &masks, nullptr, nullptr));
    EXPECT_TRUE(contains(got, message)) << got;
    EXPECT_EQ(masks.handle, nullptr);
  };
  refused("points, a box or a mask");
  prompt.num_points = 1;
  refused("points: expected a pointer");
  const std::array<double, 2> outside{91, 3};
  prompt.points = outside.data();
  refused("the image of 90×60");
  const float logit = 0;
  prompt.mask_logits = &logit;
  prompt.mask_size = 1;
  refused("mask_size: expected 40, got 1");
  OwnedTensor features;
  const vitrail_image* const images[] = {by.image};
  EXPECT_TRUE(contains(message_of(vitrail_embed(by.model, images, 1, nullptr, &features)), "a Vision Transformer"));
  OwnedModel vit, other;
  OwnedEmbedding embedding;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &vit)), "");
  EXPECT_TRUE(contains(message_of(vitrail_segment_embed(vit, by.image, &embedding)), "Segment Anything"));
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.labels = "labels.txt";
  EXPECT_TRUE(contains(message_of(vitrail_model_open(by.fixture.model.c_str(), &options, &other)), "precision alone"));
}

}  // namespace
}  // namespace vitrail::testing
