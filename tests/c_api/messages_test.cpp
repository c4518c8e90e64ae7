// SPDX-License-Identifier: Apache-2.0
// What the C interface says about itself, about models of all kinds, and about arguments that it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/c_api/handles.h"
#include "tests/support/models.h"
#include "tests/train/training_fixture.h"
#include "vitrail/base/read_file.h"
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/yuv.h"

namespace vitrail::testing {
namespace {

const std::string kNull = ": expected a pointer, got NULL";

TEST(CApiVersion, IsThatOfTheHeader) {
  EXPECT_EQ(vitrail_api_version(), 8);
  EXPECT_EQ(vitrail_api_version(), VITRAIL_C_API_VERSION);
  const std::string version = vitrail_version();
  EXPECT_EQ(std::ranges::count(version, '.'), 2) << version;
  EXPECT_EQ(version.find_first_not_of("0123456789."), version.npos) << version;
}

TEST(CApiStatus, HasThePartsOfItsErrorInTheirPlaces) {
  const auto expect = [](const std::function<void()>& action, const char* message, const char* where,
                         const char* expected, const char* got) {
    vitrail_status* const status = c_api::guarded(action);
    ASSERT_NE(status, nullptr);
    EXPECT_STREQ(vitrail_status_message(status), message);
    EXPECT_STREQ(vitrail_status_where(status), where);
    EXPECT_STREQ(vitrail_status_expected(status), expected);
    EXPECT_STREQ(vitrail_status_got(status), got);
    vitrail_status_free(status);
  };
  expect([] { throw Error("a", "b", "c"); }, "a: expected b, got c", "a", "b", "c");
  expect([] { throw Error("a sentence"); }, "a sentence", "", "", "");
  expect([] { throw std::logic_error("fault"); }, "fault", "", "", "");
  expect([] { throw std::bad_alloc(); }, "out of memory", "", "", "");
  expect([] { throw std::bad_alloc(); }, "out of memory", "", "", "");  // the same status again
  EXPECT_EQ(c_api::guarded([] {}), nullptr);
  vitrail_status_free(nullptr);
}

TEST(CApiTensor, IsContiguousF32) {
  OwnedTensor tensor;
  tensor.handle =
      c_api::new_tensor(Tensor::from<double>({2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6.5}).permute({1, 0}));
  ASSERT_EQ(vitrail_tensor_rank(tensor), 2);
  EXPECT_EQ(vitrail_tensor_shape(tensor)[0], 3);
  EXPECT_EQ(vitrail_tensor_shape(tensor)[1], 2);
  const float* const values = vitrail_tensor_data(tensor);
  EXPECT_EQ(std::vector<float>(values, values + 6), (std::vector<float>{1, 4, 2, 5, 3, 6.5}));
}

TEST(CApiOptions, AStructureHasASizeThatSomeVersionHad) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
  options.tokens = VITRAIL_TOKENS_CLS;
  const auto message = [&](size_t size) {
    options.struct_size = size;
    OwnedTensor features;
    return message_of(vitrail_embed(handle, in.handles.data(), 1, &options, &features));
  };
  const size_t all = sizeof(vitrail_embed_options);
  EXPECT_EQ(message(all), "");
  EXPECT_EQ(message(sizeof(size_t)), "");
  EXPECT_EQ(message(all + 1), str("vitrail_embed_options.struct_size: expected at most ", all, ", got ", all + 1));
  EXPECT_EQ(message(7), str("vitrail_embed_options.struct_size: expected at most ", all, ", got 7"));
  EXPECT_EQ(message(0), str("vitrail_embed_options.struct_size: expected at most ", all, ", got 0"));
  options.tokens = static_cast<vitrail_tokens>(5);
  EXPECT_EQ(message(all), "tokens: expected a vitrail_tokens, got 5");
  EXPECT_EQ(message(sizeof(size_t)), "") << "tokens that the caller's header does not have";

  vitrail_attention_options attention = VITRAIL_ATTENTION_OPTIONS_INIT;
  attention.struct_size = 1000;
  OwnedTensor map;
  EXPECT_EQ(message_of(vitrail_attention(handle, in.a, &attention, &map)),
            str("vitrail_attention_options.struct_size: expected at most ", sizeof attention, ", got 1000"));
  vitrail_model_options opening = VITRAIL_MODEL_OPTIONS_INIT;
  opening.struct_size = 1000;
  OwnedModel other;
  EXPECT_EQ(message_of(vitrail_model_open(small_model().c_str(), &opening, &other)),
            str("vitrail_model_options.struct_size: expected at most ", sizeof opening, ", got 1000"));
  vitrail_train_options training = VITRAIL_TRAIN_OPTIONS_INIT;
  training.struct_size = 1000;
  int stopped = 7;
  EXPECT_EQ(message_of(vitrail_train("{}", "x", &training, &stopped)),
            str("vitrail_train_options.struct_size: expected at most ", sizeof training, ", got 1000"));
  EXPECT_EQ(stopped, 7);
}

// The colour mode is the model's: grey for a model of one channel, and RGB without a model and for Segment Anything.
TEST(CApiImage, IsDecodedInTheModelsMode) {
  const std::string path = model_fixture("timm_gray").parent_path();
  const Model model(path);
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(path.c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  ASSERT_EQ(in.views[0].channels(), 1);
  const std::string bytes = read_text_file(in.folder / "a.png");
  OwnedImage decoded, grey, rgb, segmented;
  EXPECT_OK(vitrail_image_decode(handle, bytes.data(), bytes.size(), 0, &decoded));
  const image::Image& pixels = in.pixels[0];
  EXPECT_OK(vitrail_image_view(pixels.pixels.data(), pixels.pixels.size(), pixels.width, pixels.height, 0, VITRAIL_GREY,
                               &grey));
  for (const vitrail_image* image : {in.handles[0], static_cast<const vitrail_image*>(decoded.handle),
                                     static_cast<const vitrail_image*>(grey.handle)}) {
    EXPECT_EQ(image->view.channels(), 1);
    OwnedTensor input;
    EXPECT_OK(vitrail_preprocess(handle, &image, 1, &input));
    expect_same(input, model.preprocess({in.views.data(), 1}));
  }
  EXPECT_OK(vitrail_image_decode(nullptr, bytes.data(), bytes.size(), 0, &rgb));
  ASSERT_NE(rgb.handle, nullptr);
  EXPECT_EQ(rgb.handle->view.channels(), 3);
  const Segmenter by;
  EXPECT_OK(vitrail_image_decode(by.model, bytes.data(), bytes.size(), 0, &segmented));
  ASSERT_NE(segmented.handle, nullptr);
  EXPECT_EQ(segmented.handle->view.channels(), 3);
}

// Each field is that of image::YuvFrame.
TEST(CApiImage, IsMadeOfAFrameInYuv) {
  std::vector<uint8_t> bytes(60);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(37 * i + 5);
  const std::span all(bytes);
  const image::YuvFrame frames[] = {
      {.width = 6, .height = 4, .pixels = all.first(36)},
      {.format = image::YuvFormat::yuyv, .width = 6, .height = 4, .pixels = all, .stride = 15},
      {.width = 6, .height = 4, .pixels = all.first(30), .stride = 8, .chroma = all.last(18), .chroma_stride = 10},
      {.width = 6, .height = 4, .pixels = all, .matrix = image::YuvMatrix::bt709},
      {.width = 6, .height = 4, .pixels = all, .full_range = true}};
  for (const image::YuvFrame& want : frames) {
    vitrail_yuv_frame frame = VITRAIL_YUV_FRAME_INIT;
    frame.format = want.format == image::YuvFormat::yuyv ? VITRAIL_YUYV : VITRAIL_NV12;
    frame.width = want.width;
    frame.height = want.height;
    frame.pixels = want.pixels.data();
    frame.size = want.pixels.size();
    frame.stride = want.stride;
    frame.chroma = want.chroma.data();
    frame.chroma_size = want.chroma.size();
    frame.chroma_stride = want.chroma_stride;
    frame.bt709 = want.matrix == image::YuvMatrix::bt709;
    frame.full_range = want.full_range;
    OwnedImage image;
    ASSERT_EQ(message_of(vitrail_image_from_yuv(&frame, &image)), "");
    EXPECT_EQ(image.handle->pixels->pixels, image::to_rgb(want).pixels) << &want - frames;
  }
}

TEST(CApiImage, RefusalsOfAFrameNameTheField) {
  OwnedImage image;
  const uint8_t bytes[6] = {};
  vitrail_yuv_frame frame = VITRAIL_YUV_FRAME_INIT;
  EXPECT_EQ(message_of(vitrail_image_from_yuv(nullptr, &image)), "frame" + kNull);
  EXPECT_EQ(message_of(vitrail_image_from_yuv(&frame, nullptr)), "image" + kNull);
  EXPECT_EQ(message_of(vitrail_image_from_yuv(&frame, &image)), "pixels" + kNull);
  frame.pixels = bytes;
  frame.size = 5;
  frame.width = frame.height = 2;
  EXPECT_EQ(message_of(vitrail_image_from_yuv(&frame, &image)),
            "yuv frame: chroma: expected 1 row of 2 bytes, 2 bytes apart, got 1 byte");
  frame.format = static_cast<vitrail_yuv_format>(2);
  EXPECT_EQ(message_of(vitrail_image_from_yuv(&frame, &image)), "format: expected a vitrail_yuv_format, got 2");
  frame.struct_size = sizeof frame + 1;
  EXPECT_EQ(message_of(vitrail_image_from_yuv(&frame, &image)),
            str("vitrail_yuv_frame.struct_size: expected at most ", sizeof frame, ", got ", sizeof frame + 1));
  EXPECT_EQ(image.handle, nullptr);
}

TEST(CApiImage, RefusalsNameTheArgument) {
  OwnedImage image;
  const uint8_t pixel[3] = {};
  EXPECT_EQ(message_of(vitrail_image_view(pixel, 3, 1, 1, 0, static_cast<vitrail_pixel_format>(5), &image)),
            "format: expected a vitrail_pixel_format, got 5");
  EXPECT_EQ(message_of(vitrail_image_view(pixel, 3, 1, 1, 0, VITRAIL_RGB, nullptr)), "image" + kNull);
  EXPECT_EQ(message_of(vitrail_image_view(pixel, 2, 1, 1, 0, VITRAIL_BGR, &image)), "pixels: expected 3 bytes, got 2");
  EXPECT_EQ(message_of(vitrail_image_view(pixel, 3, 1, 1, 0, VITRAIL_BGRA, &image)), "pixels: expected 4 bytes, got 3");
  EXPECT_EQ(message_of(vitrail_image_read(nullptr, "x.png", 0, nullptr)), "image" + kNull);
  EXPECT_EQ(message_of(vitrail_image_read(nullptr, nullptr, 0, &image)), "path" + kNull);
  EXPECT_EQ(message_of(vitrail_image_decode(nullptr, nullptr, 3, 0, &image)), "bytes" + kNull);
  EXPECT_EQ(message_of(vitrail_image_decode(nullptr, pixel, 3, 0, nullptr)), "image" + kNull);
  EXPECT_TRUE(message_of(vitrail_image_decode(nullptr, pixel, 3, 0, &image)).starts_with("image: expected "));
  EXPECT_EQ(image.handle, nullptr);
}

TEST(CApiModel, OfSegmentAnythingHasItsConfigurationAndNoClasses) {
  const Segmenter by;
  const auto config = nlohmann::json::parse(vitrail_model_config(by.model));
  EXPECT_EQ(config, (nlohmann::json{{"architecture", "sam"},
                                    {"image_size", by.predictor.image_size()},
                                    {"mask_size", by.predictor.mask_size()}}));
  EXPECT_NE(by.predictor.image_size(), by.predictor.mask_size());
  EXPECT_EQ(vitrail_model_num_classes(by.model), 0);
  EXPECT_EQ(vitrail_model_class_name(by.model, 0), nullptr);
  EXPECT_EQ(vitrail_model_has_text(by.model), 0);
  const std::string path = by.fixture.model;
  OwnedTensor tensor;
  const vitrail_image* const image = by.image;
  int64_t written = 7;
  vitrail_prediction prediction;
  const std::string refused =
      path + ": expected a Vision Transformer, got Segment Anything, which vitrail_segment is for";
  EXPECT_EQ(message_of(vitrail_classify(by.model, &image, 1, 1, &prediction, &written)), refused);
  EXPECT_EQ(message_of(vitrail_logits(by.model, &image, 1, &tensor)), refused);
  EXPECT_EQ(message_of(vitrail_attention(by.model, image, nullptr, &tensor)), refused);
  EXPECT_EQ(message_of(vitrail_preprocess(by.model, &image, 1, &tensor)), refused);
  EXPECT_EQ(written, 7);
  for (const int field : {0, 1, 2, 3}) {
    vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
    if (field == 0) options.labels = "x";
    if (field == 1) options.config = "x";
    if (field == 2) options.tokenizer = "x";
    if (field == 3) options.image_height = options.image_width = 32;
    OwnedModel other;
    EXPECT_EQ(message_of(vitrail_model_open(path.c_str(), &options, &other)),
              "options of the model: expected threads and precision alone, for Segment Anything, got others")
        << field;
    EXPECT_EQ(other.handle, nullptr);
  }
}

TEST(CApiModel, OfSegmentAnythingTakesItsPrecision) {
  const Segmenter by;
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.precision = "half";
  options.threads = 1;
  OwnedModel half;
  OwnedEmbedding embedding;
  EXPECT_OK(vitrail_model_open(by.fixture.model.c_str(), &options, &half));
  EXPECT_OK(vitrail_segment_embed(half, by.image, &embedding));
  const sam::Predictor predictor(by.fixture.model, {.threads = 1, .precision = kernels::Precision::half});
  const Tensor got = embedding.handle->embedding.values, want = predictor.embed(by.fixture.image).values;
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_EQ(std::memcmp(got.data<float>(), want.data<float>(), static_cast<size_t>(got.numel()) * sizeof(float)), 0);
  EXPECT_NE(std::memcmp(got.data<float>(), by.embedding.values.data<float>(), 4 * sizeof(float)), 0) << "not fp32";
}

TEST(CApiModel, RefusalsNameTheOption) {
  const auto refusal = [](const std::function<void(vitrail_model_options&)>& change) {
    vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
    change(options);
    OwnedModel handle;
    return message_of(vitrail_model_open(small_model().c_str(), &options, &handle));
  };
  EXPECT_EQ(refusal([](auto& options) { options.threads = -1; }), "threads: expected at least 0, got -1");
  EXPECT_EQ(refusal([](auto& options) { options.image_height = 32; }),
            "image_height, image_width: expected both positive, or both 0, got 32, 0");
  EXPECT_EQ(refusal([](auto& options) { options.image_width = 32; }),
            "image_height, image_width: expected both positive, or both 0, got 0, 32");
  EXPECT_TRUE(contains(refusal([](auto& options) { options.labels = "/no/labels"; }), "/no/labels"));
  EXPECT_TRUE(contains(refusal([](auto& options) { options.config = "/no/config.json"; }), "/no/config.json"));
  EXPECT_TRUE(contains(refusal([](auto& options) { options.precision = "fp64"; }), "fp64"));
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.tokenizer = "/no/tokenizer.json";
  OwnedModel clip;
  OwnedTensor texts;
  std::string message = message_of(vitrail_model_open(fixture("models/hf_clip").c_str(), &options, &clip));
  const char* const cat = "cat";
  if (message.empty()) message = message_of(vitrail_embed_texts(clip, &cat, 1, &texts));
  EXPECT_TRUE(contains(message, "/no/tokenizer.json")) << message;
  EXPECT_EQ(message_of(vitrail_model_open(nullptr, nullptr, &clip)), "path" + kNull);
  EXPECT_EQ(message_of(vitrail_model_open("x", nullptr, nullptr)), "model" + kNull);
}

TEST(CApiInference, RefusalsNameTheArgument) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  const auto images = in.handles.data();
  const vitrail_image* const second_missing[] = {in.a, nullptr};
  OwnedTensor tensor;
  int64_t written = 7;
  vitrail_prediction prediction{};
  const int64_t shape[] = {1, 3, 32, 32}, negative[] = {1, -3, 32, 32};
  const float value = 0;
  EXPECT_EQ(message_of(vitrail_classify(handle, images, 1, 0, &prediction, &written)),
            "top: expected at least 1, got 0");
  EXPECT_EQ(message_of(vitrail_classify(handle, images, 1, -2, &prediction, &written)),
            "top: expected at least 1, got -2");
  EXPECT_EQ(message_of(vitrail_classify(nullptr, images, 1, 1, &prediction, &written)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_classify(handle, images, 1, 1, nullptr, &written)), "predictions" + kNull);
  EXPECT_EQ(message_of(vitrail_classify(handle, images, 1, 1, &prediction, nullptr)), "written" + kNull);
  EXPECT_EQ(message_of(vitrail_classify(handle, second_missing, 2, 1, &prediction, &written)), "images" + kNull);
  EXPECT_EQ(message_of(vitrail_logits(nullptr, images, 1, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_logits(handle, images, 1, nullptr)), "logits" + kNull);
  EXPECT_EQ(message_of(vitrail_logits(handle, nullptr, 1, &tensor)), "images" + kNull);
  EXPECT_EQ(message_of(vitrail_embed(nullptr, images, 1, nullptr, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_embed(handle, images, 1, nullptr, nullptr)), "features" + kNull);
  EXPECT_EQ(message_of(vitrail_attention(nullptr, in.a, nullptr, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_attention(handle, nullptr, nullptr, &tensor)), "image" + kNull);
  EXPECT_EQ(message_of(vitrail_attention(handle, in.a, nullptr, nullptr)), "map" + kNull);
  EXPECT_EQ(message_of(vitrail_pca(nullptr, images, 1, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_pca(handle, images, 1, nullptr)), "maps" + kNull);
  EXPECT_EQ(message_of(vitrail_pca(handle, images, 0, &tensor)), "pca: expected at least one image, got none");
  EXPECT_EQ(message_of(vitrail_preprocess(nullptr, images, 1, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_preprocess(handle, images, 1, nullptr)), "input" + kNull);
  EXPECT_EQ(message_of(vitrail_forward(handle, nullptr, shape, &tensor)), "input" + kNull);
  EXPECT_EQ(message_of(vitrail_forward(handle, &value, nullptr, &tensor)), "shape" + kNull);
  EXPECT_TRUE(message_of(vitrail_forward(handle, &value, negative, &tensor)).starts_with("shape: expected "));
  const std::vector<float> pixels(3 * 32 * 32);
  EXPECT_EQ(message_of(vitrail_forward(handle, pixels.data(), shape, nullptr)), "output" + kNull);
  EXPECT_EQ(message_of(vitrail_forward(nullptr, pixels.data(), shape, &tensor)), "model" + kNull);
  EXPECT_EQ(tensor.handle, nullptr);
  EXPECT_EQ(written, 7);
}

TEST(CApiInference, EachOptionOfAnEmbeddingIsItsOwn) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  for (const bool skip_norm : {false, true}) {
    for (const bool l2 : {false, true}) {
      vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
      EXPECT_EQ(options.layer, -1);
      options.tokens = VITRAIL_TOKENS_CLS;
      options.skip_norm = skip_norm ? 2 : 0;
      options.l2_normalize = l2 ? 2 : 0;
      OwnedTensor features;
      EXPECT_OK(vitrail_embed(handle, in.handles.data(), 2, &options, &features));
      expect_same(features,
                  model.embed(in.views, {.tokens = infer::Tokens::cls, .final_norm = !skip_norm, .l2_normalize = l2}));
    }
  }
}

TEST(CApiText, RefusalsNameTheArgument) {
  const std::string path = fixture("models/hf_clip");
  OwnedModel clip, vit;
  ASSERT_EQ(message_of(vitrail_model_open(path.c_str(), nullptr, &clip)), "");
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &vit)), "");
  const Model model(small_model());
  const Inputs in(model, vit);
  const char* const texts[] = {"cat", nullptr};
  OwnedTensor tensor;
  const auto images = in.handles.data();
  EXPECT_EQ(message_of(vitrail_embed_texts(clip, texts, 2, &tensor)), "texts" + kNull);
  EXPECT_EQ(message_of(vitrail_embed_texts(clip, texts, 1, nullptr)), "embeddings" + kNull);
  EXPECT_EQ(message_of(vitrail_embed_texts(nullptr, texts, 1, &tensor)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_zeroshot(clip, images, 1, texts, 1, nullptr, 0, nullptr)), "probabilities" + kNull);
  EXPECT_EQ(message_of(vitrail_zeroshot(clip, images, 1, texts, 2, nullptr, 0, &tensor)), "labels" + kNull);
  EXPECT_EQ(message_of(vitrail_zeroshot(clip, images, 1, texts, 1, texts, 2, &tensor)), "templates" + kNull);
  EXPECT_EQ(message_of(vitrail_zeroshot(clip, images, 1, texts, 1, nullptr, 1, &tensor)), "templates" + kNull);
  EXPECT_EQ(message_of(vitrail_zeroshot(clip, nullptr, 1, texts, 1, nullptr, 0, &tensor)), "images" + kNull);
  EXPECT_EQ(message_of(vitrail_embed_texts(vit, texts, 1, &tensor)),
            small_model() + ": expected a model with a text tower (CLIP, SigLIP), got an image model alone (\"" +
                model.config().architecture + "\")");
  EXPECT_EQ(tensor.handle, nullptr);
}

TEST(CApiSegment, RefusalsNameTheArgument) {
  const Segmenter by;
  OwnedEmbedding embedding;
  OwnedModel vit;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &vit)), "");
  EXPECT_EQ(message_of(vitrail_segment_embed(by.model, by.image, nullptr)), "embedding" + kNull);
  EXPECT_EQ(message_of(vitrail_segment_embed(nullptr, by.image, &embedding)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_segment_embed(by.model, nullptr, &embedding)), "image" + kNull);
  EXPECT_EQ(message_of(vitrail_segment_embed(vit, by.image, &embedding)),
            small_model() + ": expected a checkpoint of Segment Anything, got another model");
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  const auto refusal = [&](const vitrail_prompt* given) {
    return message_of(vitrail_segment(by.model, by.handle, given, nullptr, nullptr, nullptr));
  };
  EXPECT_EQ(refusal(nullptr), "prompt" + kNull);
  EXPECT_EQ(message_of(vitrail_segment(nullptr, by.handle, &prompt, nullptr, nullptr, nullptr)), "model" + kNull);
  EXPECT_EQ(message_of(vitrail_segment(by.model, nullptr, &prompt, nullptr, nullptr, nullptr)), "embedding" + kNull);
  prompt.num_points = 1;
  EXPECT_EQ(refusal(&prompt), "points" + kNull);
  const double point[] = {30, 20}, box[] = {50, 20, 10, 40};
  const int label = 2;
  prompt.points = point;
  EXPECT_EQ(refusal(&prompt), "");
  prompt.labels = &label;
  EXPECT_TRUE(contains(refusal(&prompt), "the label 1 (in the object) or 0 (outside it), got 2"));
  prompt.labels = nullptr;
  prompt.box = box;
  EXPECT_TRUE(contains(refusal(&prompt), "got 50, 20, 10, 40"));
  prompt.box = nullptr;
  const std::vector<float> logits(41 * 41, -1);
  prompt.mask_logits = logits.data();
  for (const int64_t size : {39, 41}) {
    prompt.mask_size = size;
    EXPECT_EQ(refusal(&prompt), str("mask_size: expected 40, got ", size));
  }
  const std::vector<uint8_t> pixels(90 * 60, 1);
  prompt.mask = pixels.data();
  prompt.mask_width = 90;
  prompt.mask_height = 60;
  prompt.mask_size = 40;
  EXPECT_EQ(refusal(&prompt), "mask: expected a mask or logits of one, got both");
  prompt.mask_logits = nullptr;
  EXPECT_EQ(refusal(&prompt), "");
  prompt.mask_height = 0;
  EXPECT_EQ(refusal(&prompt), "mask: expected at least one pixel, got 90×0");
  prompt.mask_height = 59;
  EXPECT_EQ(refusal(&prompt), "mask: expected the image's size 90×60, got 90×59");
  prompt.struct_size = 1000;
  EXPECT_EQ(refusal(&prompt), str("vitrail_prompt.struct_size: expected at most ", sizeof prompt, ", got 1000"));
}

// The events of a run in their order, as JSON or as text.
TEST(CApiTraining, EventsHaveTheirTexts) {
  struct Events {
    std::map<vitrail_train_event, std::vector<std::string>> texts;
    std::vector<vitrail_train_event> order;
  } events;
  const std::string recipe = train::write_recipe(train::parse_recipe(train::tiny_recipe(train::make_images(8, 2)), ""));
  const std::array<const char*, 2> settings{"epochs=2", "data.holdout=6"};
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  options.threads = 1;
  options.settings = settings.data();
  options.num_settings = settings.size();
  options.context = &events;
  options.on_event = [](vitrail_train_event event, const char* text, void* context) {
    static_cast<Events*>(context)->texts[event].emplace_back(text);
    static_cast<Events*>(context)->order.push_back(event);
    return 0;
  };
  int stopped = 7;
  const fs::path folder = scratch_folder() / "run";
  EXPECT_OK(vitrail_train(recipe.c_str(), folder.c_str(), &options, &stopped));
  EXPECT_EQ(stopped, 0);
  ASSERT_EQ(events.texts[VITRAIL_TRAIN_EPOCH].size(), 2u);
  ASSERT_EQ(events.texts[VITRAIL_TRAIN_RESULT].size(), 1u);
  ASSERT_FALSE(events.texts[VITRAIL_TRAIN_PROGRESS].empty());
  EXPECT_EQ(events.order.back(), VITRAIL_TRAIN_RESULT);
  const auto parsed = [&](vitrail_train_event event, size_t i) {
    return nlohmann::json::parse(events.texts[event][i]);
  };
  EXPECT_EQ(parsed(VITRAIL_TRAIN_EPOCH, 0)["epoch"], 1);
  EXPECT_EQ(parsed(VITRAIL_TRAIN_EPOCH, 1)["epoch"], 2);
  EXPECT_TRUE(parsed(VITRAIL_TRAIN_PROGRESS, 0).is_object());
  EXPECT_EQ(parsed(VITRAIL_TRAIN_RESULT, 0)["epochs"], 2);
  EXPECT_TRUE(contains(read_text_file(folder / "report.html"), str("vitrail ", vitrail_version())));
}

// A request to stop in the event of an epoch, too, ends the run before the next one.
TEST(CApiTraining, AnyEventMayAskForAStop) {
  const std::string recipe = train::write_recipe(train::parse_recipe(train::tiny_recipe(train::make_images(8, 2)), ""));
  const std::array<const char*, 2> settings{"epochs=5", "data.holdout=6"};
  int epochs = 0, stopped = 0;
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  options.threads = 1;
  options.settings = settings.data();
  options.num_settings = settings.size();
  options.context = &epochs;
  options.on_event = [](vitrail_train_event event, const char*, void* context) {
    if (event != VITRAIL_TRAIN_EPOCH) return 0;
    ++*static_cast<int*>(context);
    return -1;
  };
  EXPECT_OK(vitrail_train(recipe.c_str(), (scratch_folder() / "run").c_str(), &options, &stopped));
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(epochs, 1);
}

TEST(CApiTraining, RefusalsNameTheArgument) {
  int stopped = 7;
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  EXPECT_EQ(message_of(vitrail_train("{}", "x", nullptr, nullptr)), "stopped" + kNull);
  EXPECT_EQ(message_of(vitrail_train(nullptr, "x", nullptr, &stopped)), "source" + kNull);
  EXPECT_EQ(message_of(vitrail_train("{}", nullptr, nullptr, &stopped)), "folder" + kNull);
  options.threads = -1;
  EXPECT_EQ(message_of(vitrail_train("{}", "x", &options, &stopped)), "threads: expected at least 0, got -1");
  options.threads = 0;
  options.num_settings = 1;
  EXPECT_EQ(message_of(vitrail_train("{}", "x", &options, &stopped)), "settings" + kNull);
  options.num_settings = 0;
  options.preset = "probe";
  EXPECT_EQ(message_of(vitrail_train("{}", "x", &options, &stopped)), "preset: expected none for a recipe, got probe");
  options.preset = "prob";
  EXPECT_EQ(message_of(vitrail_train("photos", "x", &options, &stopped)),
            "preset: expected finetune, probe, scratch, got prob");
  const std::string folder = scratch_folder() / "run";
  EXPECT_TRUE(message_of(vitrail_train("{\"epochss\": 1}", folder.c_str(), nullptr, &stopped)).starts_with("recipe"));
  EXPECT_TRUE(
      contains(message_of(vitrail_train("/no/recipe.json", folder.c_str(), nullptr, &stopped)), "/no/recipe.json"));
  EXPECT_TRUE(contains(message_of(vitrail_train("/no/data", folder.c_str(), nullptr, &stopped)), "/no/data"));
  EXPECT_EQ(stopped, 7);
}

}  // namespace
}  // namespace vitrail::testing
