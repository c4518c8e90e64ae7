// SPDX-License-Identifier: Apache-2.0
// Defaults, limits and missing arguments of the C interface.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>

#include "tests/c_api/handles.h"
#include "tests/train/training_fixture.h"
#include "vitrail/analysis/pca.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/c_api/handles_internal.h"
#include "vitrail/pipeline/dual_model.h"

namespace vitrail::testing {
namespace {

// Without templates, a label is a text by itself.
TEST(CApiOptions, WithoutTemplatesLabelsAreTextsThemselves) {
  const std::string path = fixture("models/hf_clip");
  const DualModel model(path);
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(path.c_str(), nullptr, &handle)), "");
  const Inputs in(model.images(), handle);
  const std::array<const char*, 2> names{"cat", "dog"};
  OwnedTensor probabilities;
  EXPECT_OK(vitrail_zeroshot(handle, in.handles.data(), 2, names.data(), 2, nullptr, 0, &probabilities));
  expect_same(probabilities,
              model.probabilities(model.logits(model.embed_images(in.views), model.embed_texts({"cat", "dog"}))));
  OwnedTensor none;
  EXPECT_TRUE(contains(message_of(vitrail_embed_texts(handle, nullptr, 1, &none)), "texts: expected a pointer"));
  EXPECT_TRUE(contains(message_of(vitrail_embed_texts(handle, nullptr, 0, &none)), "at least one text"));
  EXPECT_TRUE(contains(message_of(vitrail_embed_texts(handle, names.data(), 2, nullptr)), "embeddings: expected"));
  EXPECT_TRUE(contains(message_of(vitrail_zeroshot(handle, in.handles.data(), 2, nullptr, 2, nullptr, 0, &none)),
                       "labels: expected a pointer"));
}

// A limit that is reached at the n-th look.
struct Countdown {
  std::atomic<int> looks{0};
  int last = 0;
  static int reached(void* context) {
    auto* const countdown = static_cast<Countdown*>(context);
    return ++countdown->looks >= countdown->last;
  }
};

TEST(CApiLimit, ACallEndsWhenTheProgramSaysSo) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  const Tensor want = model.logits(in.views);
  Countdown never{.last = 1 << 30};
  vitrail_call_limit limit = VITRAIL_CALL_LIMIT_INIT;
  limit.cancelled = Countdown::reached;
  limit.context = &never;
  EXPECT_OK(vitrail_set_call_limit(&limit));
  {
    OwnedTensor logits;
    EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
    expect_same(logits, want);
  }
  Countdown images{.last = 1 << 30};
  limit.context = &images;
  EXPECT_OK(vitrail_set_call_limit(&limit));
  OwnedTensor input;
  EXPECT_OK(vitrail_preprocess(handle, in.handles.data(), 2, &input));
  EXPECT_EQ(images.looks, 2) << "once for each image";
  ASSERT_GT(never.looks, 2 + model.config().vit.depth) << "once for each layer, too";
  for (const int last : {1, 2, 3, never.looks.load()}) {
    Countdown countdown{.last = last};
    limit.context = &countdown;
    EXPECT_OK(vitrail_set_call_limit(&limit));
    OwnedTensor logits;
    vitrail_status* const status = vitrail_logits(handle, in.handles.data(), 2, &logits);
    ASSERT_NE(status, nullptr) << last;
    EXPECT_EQ(vitrail_status_code(status), VITRAIL_CANCELLED);
    EXPECT_STREQ(vitrail_status_message(status), "the call was cancelled");
    EXPECT_STREQ(vitrail_status_where(status), "");
    vitrail_status_free(status);
    EXPECT_EQ(logits.handle, nullptr);
  }
  // Other threads have no limit, and afterwards the model is as before.
  std::thread([&] {
    OwnedTensor logits;
    EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
  }).join();
  EXPECT_OK(vitrail_set_call_limit(nullptr));
  OwnedTensor logits;
  EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
  expect_same(logits, want);
}

TEST(CApiLimit, ADeadlineEndsTheCallsAfterIt) {
  const Segmenter by;
  vitrail_call_limit limit = VITRAIL_CALL_LIMIT_INIT;
  limit.timeout_ms = 1;
  EXPECT_OK(vitrail_set_call_limit(&limit));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  OwnedEmbedding embedding;
  EXPECT_EQ(message_of(vitrail_segment_embed(by.model, by.image, &embedding)), "the deadline of the call has passed");
  limit.timeout_ms = 1'000'000;
  EXPECT_OK(vitrail_set_call_limit(&limit));
  EXPECT_OK(vitrail_segment_embed(by.model, by.image, &embedding));
  EXPECT_OK(vitrail_set_call_limit(nullptr));
}

TEST(CApiLimit, RefusalsLeaveTheLimitAsItIs) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(Model(small_model()), handle);
  vitrail_call_limit limit = VITRAIL_CALL_LIMIT_INIT;
  limit.cancelled = [](void*) { return 1; };
  EXPECT_OK(vitrail_set_call_limit(&limit));
  limit.cancelled = nullptr;
  for (const int64_t timeout : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    limit.timeout_ms = timeout;
    EXPECT_EQ(message_of(vitrail_set_call_limit(&limit)),
              str("timeout_ms: expected 0 to 1099511627776, got ", timeout));
  }
  limit.struct_size = 1;
  EXPECT_TRUE(message_of(vitrail_set_call_limit(&limit)).starts_with("vitrail_call_limit.struct_size: "));
  OwnedTensor logits;
  EXPECT_EQ(message_of(vitrail_logits(handle, in.handles.data(), 1, &logits)), "the call was cancelled");
  EXPECT_OK(vitrail_set_call_limit(nullptr));
}

TEST(CApiOptions, BothSidesOfAnImageSizeArePositiveOrNone) {
  for (const auto& [height, width] : {std::pair(32, 0), std::pair(0, 32), std::pair(-32, -32), std::pair(-1, 0),
                                      std::pair(0, -1), std::pair(32, -1)}) {
    vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
    options.image_height = height;
    options.image_width = width;
    OwnedModel handle;
    const std::string message = message_of(vitrail_model_open(small_model().c_str(), &options, &handle));
    EXPECT_TRUE(contains(message, "both positive, or both 0")) << height << "," << width << ": " << message;
    EXPECT_EQ(handle.handle, nullptr);
  }
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.image_height = 48;
  options.image_width = 64;
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), &options, &handle)), "");
  const Model model(small_model(), {.load = {.image_size = {{48, 64}}}});
  const Inputs in(model, handle);
  OwnedTensor input, logits;
  EXPECT_OK(vitrail_preprocess(handle, in.handles.data(), 2, &input));
  EXPECT_EQ(vitrail_tensor_shape(input)[2], 48);
  EXPECT_EQ(vitrail_tensor_shape(input)[3], 64);
  EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
  expect_same(logits, model.logits(in.views));
}

TEST(CApiOptions, AModelTakesItsPrecisionAndItsLabels) {
  const fs::path names = scratch_folder() / "names.txt";
  std::ofstream(names) << "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  options.threads = 1;
  options.precision = "half";
  options.labels = names.c_str();
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), &options, &handle)), "");
  const Model model(small_model(), {.threads = 1, .precision = kernels::Precision::half});
  const Inputs in(model, handle);
  OwnedTensor logits;
  EXPECT_OK(vitrail_logits(handle, in.handles.data(), 2, &logits));
  expect_same(logits, model.logits(in.views));
  EXPECT_STREQ(vitrail_model_class_name(handle, 0), "a");
  EXPECT_STREQ(vitrail_model_class_name(handle, 9), "j");
  EXPECT_EQ(vitrail_model_class_name(handle, 10), nullptr);
  EXPECT_EQ(vitrail_model_class_name(handle, -1), nullptr);
  EXPECT_EQ(vitrail_model_has_text(handle), 0);
  OwnedModel other;
  options.threads = -1;
  EXPECT_TRUE(contains(message_of(vitrail_model_open(small_model().c_str(), &options, &other)), "threads: expected"));
  options.threads = 0;
  options.precision = "fp64";
  EXPECT_NE(message_of(vitrail_model_open(small_model().c_str(), &options, &other)), "");
  EXPECT_EQ(other.handle, nullptr);
}

// A warning after the callback was taken away, or to another one.
TEST(CApiOptions, ACallbackIsReplacedAndTakenAway) {
  const auto write = [](const char* text, void* to) { *static_cast<std::string*>(to) += text; };
  std::string first, second;
  vitrail_set_warning_callback(write, &first);
  warn("one");
  vitrail_set_warning_callback(write, &second);
  warn("two");
  vitrail_set_warning_callback(nullptr, nullptr);
  warn("three");
  EXPECT_TRUE(contains(first, "one") && !contains(first, "two")) << first;
  EXPECT_TRUE(contains(second, "two") && !contains(second, "three")) << second;
}

TEST(CApiOptions, AttentionTakesItsLayerItsHeadAndRollout) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  OwnedTensor mean, first, last_head, rollout, none;
  EXPECT_OK(vitrail_attention(handle, in.b, nullptr, &mean));
  expect_same(mean, model.attention(in.views[1]));
  vitrail_attention_options options = VITRAIL_ATTENTION_OPTIONS_INIT;
  options.layer = 0;
  EXPECT_OK(vitrail_attention(handle, in.b, &options, &first));
  expect_same(first, model.attention(in.views[1], {.layer = 0}));
  options.head = 1;
  EXPECT_OK(vitrail_attention(handle, in.b, &options, &last_head));
  expect_same(last_head, model.attention(in.views[1], {.layer = 0, .head = 1}));
  for (const int64_t head : {-2, 2}) {
    options.head = head;
    EXPECT_TRUE(contains(message_of(vitrail_attention(handle, in.b, &options, &none)), "a head index from 0 to 1"));
  }
  options = VITRAIL_ATTENTION_OPTIONS_INIT;
  options.rollout = 1;
  EXPECT_OK(vitrail_attention(handle, in.b, &options, &rollout));
  expect_same(rollout, model.attention(in.views[1], {.rollout = true}));
}

TEST(CApiOptions, PcaColorsTheImagesTogether) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  OwnedTensor a, b;
  std::array<vitrail_tensor*, 2> maps{};
  EXPECT_OK(vitrail_pca(handle, in.handles.data(), 2, maps.data()));
  a.handle = maps[0];
  b.handle = maps[1];
  std::vector<Tensor> grids;
  for (const image::ImageView& view : in.views) grids.push_back(model.embed(view, {.tokens = infer::Tokens::grid}));
  const std::vector<analysis::PcaMaps> want = analysis::pca_maps(grids);
  expect_same(a, want[0].colors);
  expect_same(b, want[1].colors);
  EXPECT_TRUE(contains(message_of(vitrail_pca(handle, in.handles.data(), 0, maps.data())), "at least one image"));
  EXPECT_TRUE(contains(message_of(vitrail_pca(handle, in.handles.data(), 2, nullptr)), "maps: expected a pointer"));
}

TEST(CApiOptions, PcaMapsAreThoseOfTheImagesWhoseFeaturesTheyAreOf) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
  options.tokens = VITRAIL_TOKENS_GRID;
  std::array<OwnedTensor, 2> features, want, got;
  std::array<vitrail_tensor*, 2> maps{};
  EXPECT_OK(vitrail_pca(handle, in.handles.data(), 2, maps.data()));
  for (size_t i = 0; i < 2; ++i) {
    want[i].handle = maps[i];
    EXPECT_OK(vitrail_embed(handle, &in.handles[i], 1, &options, &features[i]));
  }
  std::array<const vitrail_tensor*, 2> grids{features[0], features[1]};
  EXPECT_OK(vitrail_pca_maps(grids.data(), 2, maps.data()));
  for (size_t i = 0; i < 2; ++i) {
    got[i].handle = maps[i];
    expect_same(got[i], want[i].handle->values);
  }
  const auto refusal = [&](size_t count) { return message_of(vitrail_pca_maps(grids.data(), count, maps.data())); };
  EXPECT_EQ(refusal(0), "pca: expected at least one image, got none");
  OwnedTensor pooled;
  EXPECT_OK(vitrail_embed(handle, in.handles.data(), 1, nullptr, &pooled));
  grids[1] = pooled;
  EXPECT_TRUE(contains(refusal(2), "features: expected [1, rows, columns, D] of each image"));
  grids[1] = nullptr;
  EXPECT_EQ(refusal(2), "features: expected a pointer, got NULL");
  EXPECT_EQ(message_of(vitrail_pca_maps(grids.data(), 1, nullptr)), "maps: expected a pointer, got NULL");
}

TEST(CApiPaths, AreTheImagesOfAFolder) {
  const fs::path folder = image_folder(2);
  Owned<vitrail_paths, vitrail_paths_free> paths;
  EXPECT_OK(vitrail_list_images(folder.c_str(), &paths));
  EXPECT_EQ(std::string(vitrail_paths_at(paths, 0)), (folder / "a.png").string());
  EXPECT_EQ(std::string(vitrail_paths_at(paths, 1)), (folder / "b.png").string());
  EXPECT_EQ(vitrail_paths_at(paths, 2), nullptr);
  Owned<vitrail_paths, vitrail_paths_free> none;
  const std::string file = (folder / "a.png").string();
  EXPECT_EQ(message_of(vitrail_list_images(file.c_str(), &none)), file + ": expected a folder, got none");
  EXPECT_EQ(message_of(vitrail_list_images(nullptr, &none)), "folder: expected a pointer, got NULL");
  EXPECT_EQ(message_of(vitrail_list_images(file.c_str(), nullptr)), "images: expected a pointer, got NULL");
  fs::remove(folder / "a.png");
  fs::remove(folder / "b.png");
  EXPECT_EQ(message_of(vitrail_list_images(folder.c_str(), &none)),
            folder.string() + ": expected a folder with images, got none");
  EXPECT_EQ(none.handle, nullptr);
}

TEST(CApiOptions, EachKindOfTokensHasItsShape) {
  const Model model(small_model());
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Inputs in(model, handle);
  for (const auto& [tokens, same] :
       {std::pair(VITRAIL_TOKENS_POOLED, infer::Tokens::pooled), std::pair(VITRAIL_TOKENS_CLS, infer::Tokens::cls),
        std::pair(VITRAIL_TOKENS_PATCH, infer::Tokens::patch), std::pair(VITRAIL_TOKENS_GRID, infer::Tokens::grid),
        std::pair(VITRAIL_TOKENS_ALL, infer::Tokens::all)}) {
    vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
    options.tokens = tokens;
    OwnedTensor features;
    EXPECT_OK(vitrail_embed(handle, in.handles.data(), 2, &options, &features));
    expect_same(features, model.embed(in.views, {.tokens = same}));
  }
  vitrail_embed_options options = VITRAIL_EMBED_OPTIONS_INIT;
  options.tokens = static_cast<vitrail_tokens>(7);
  OwnedTensor features;
  EXPECT_TRUE(contains(message_of(vitrail_embed(handle, in.handles.data(), 2, &options, &features)), "tokens"));
}

TEST(CApiOptions, MissingArgumentsAreNamed) {
  OwnedModel handle;
  ASSERT_EQ(message_of(vitrail_model_open(small_model().c_str(), nullptr, &handle)), "");
  const Model model(small_model());
  const Inputs in(model, handle);
  OwnedTensor tensor;
  OwnedImage image;
  int64_t written = 0;
  vitrail_prediction prediction;
  const vitrail_image* const missing[] = {in.a, nullptr};
  const auto names = [](vitrail_status* status, const char* name) {
    const std::string message = message_of(status);
    EXPECT_TRUE(contains(message, str(name, ": expected "))) << message;
  };
  names(vitrail_classify(handle, in.handles.data(), 1, 1, &prediction, nullptr), "written");
  names(vitrail_classify(handle, in.handles.data(), 1, 1, nullptr, &written), "predictions");
  names(vitrail_classify(handle, in.handles.data(), 1, 0, &prediction, &written), "top");
  names(vitrail_classify(nullptr, in.handles.data(), 1, 1, &prediction, &written), "model");
  names(vitrail_classify(handle, nullptr, 1, 1, &prediction, &written), "images");
  names(vitrail_classify(handle, missing, 2, 1, &prediction, &written), "images");
  names(vitrail_logits(handle, nullptr, 0, &tensor), "model");  // no image
  names(vitrail_logits(handle, in.handles.data(), 1, nullptr), "logits");
  names(vitrail_embed(handle, in.handles.data(), 1, nullptr, nullptr), "features");
  names(vitrail_attention(handle, nullptr, nullptr, &tensor), "image");
  names(vitrail_attention(handle, in.a, nullptr, nullptr), "map");
  names(vitrail_preprocess(handle, in.handles.data(), 1, nullptr), "input");
  names(vitrail_forward(handle, nullptr, nullptr, &tensor), "input");
  names(vitrail_image_read(handle, nullptr, 0, &image), "path");
  names(vitrail_image_decode(handle, nullptr, 0, 0, &image), "bytes");
  EXPECT_EQ(tensor.handle, nullptr);
  EXPECT_EQ(image.handle, nullptr);
  const char* const text = "cat";
  EXPECT_TRUE(contains(message_of(vitrail_embed_texts(handle, &text, 1, &tensor)), "a model with a text tower"));
}

// Errors of the caller, a lack of memory, and faults of the library are told apart.
TEST(CApiStatus, HasTheCodeOfItsException) {
  const auto status_of = [](const std::function<void()>& action) -> vitrail_status* {
    try {
      action();
    } catch (...) {
      return c_api::status_of_exception();
    }
    return nullptr;
  };
  const auto expect = [&](vitrail_code code, const std::string& message, const std::function<void()>& action) {
    vitrail_status* const status = status_of(action);
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(vitrail_status_code(status), code) << message;
    EXPECT_EQ(vitrail_status_message(status), message);
    vitrail_status_free(status);
  };
  expect(VITRAIL_INVALID, "a: expected b, got c", [] { throw Error("a", "b", "c"); });
  expect(VITRAIL_OUT_OF_MEMORY, "out of memory", [] { throw std::bad_alloc(); });
  expect(VITRAIL_INTERNAL, "fault", [] { throw std::logic_error("fault"); });
  expect(VITRAIL_INTERNAL, "an unknown exception", [] { throw 1; });
}

// The last byte of the last row is the last that is needed.
TEST(CApiOptions, AViewNeedsTheBytesOfItsLastPixelAndNoMore) {
  const std::vector<uint8_t> pixels(200);
  const auto message = [&](size_t size, int64_t width, int64_t height, int64_t stride) {
    OwnedImage image;
    return message_of(vitrail_image_view(pixels.data(), size, width, height, stride, VITRAIL_RGB, &image));
  };
  EXPECT_EQ(message(2 * 20 + 4 * 3, 4, 3, 20), "");
  EXPECT_TRUE(contains(message(2 * 20 + 4 * 3 - 1, 4, 3, 20), "pixels: expected 52 bytes, got 51"));
  EXPECT_EQ(message(4 * 3, 4, 1, 0), "");
  EXPECT_EQ(message(3 * 4 * 3, 4, 3, 0), "");
  EXPECT_TRUE(contains(message(3 * 4 * 3 - 1, 4, 3, 0), "pixels: expected 36 bytes"));
  EXPECT_TRUE(contains(message(200, 4, 3, std::numeric_limits<int64_t>::max() / 2 * 2), "stride"));
  EXPECT_NE(message(200, 0, 3, 0), "");
}

// Points without labels are in the object.
TEST(CApiOptions, PointsAreInTheObjectUnlessLabelled) {
  const Segmenter by;
  const std::array<double, 4> points{30, 20, 5.5, 50};
  vitrail_prompt prompt = VITRAIL_PROMPT_INIT;
  prompt.points = points.data();
  prompt.num_points = 2;
  OwnedTensor logits, iou;
  EXPECT_OK(vitrail_segment(by.model, by.handle, &prompt, nullptr, &iou, &logits));
  const sam::Masks want = by.predictor.predict(by.embedding, {.points = {{30, 20, 1}, {5.5, 50, 1}}});
  expect_same(logits, want.logits);
  expect_same(iou, Tensor::from<float>({3}, want.iou));
  EXPECT_TRUE(
      contains(message_of(vitrail_segment(by.model, nullptr, &prompt, nullptr, nullptr, nullptr)), "embedding"));
  EXPECT_TRUE(contains(message_of(vitrail_segment(by.model, by.handle, nullptr, nullptr, nullptr, nullptr)), "prompt"));
}

TEST(CApiTraining, AGivenSettingReplacesTheModelToStartFrom) {
  const std::string recipe = train::tiny_recipe(train::make_images(8, 2));
  const fs::path folder = scratch_folder() / "run", file = scratch_folder() / "recipe.json";
  std::ofstream(file) << recipe;
  const std::array<const char*, 3> settings{"epochs=1", "data.holdout=6", "model.init=\"\""};
  vitrail_train_options options = VITRAIL_TRAIN_OPTIONS_INIT;
  options.threads = 1;
  options.model = "/no/such/model";
  options.settings = settings.data();
  options.num_settings = settings.size();
  options.on_event = [](vitrail_train_event event, const char*, void*) {
    return event == VITRAIL_TRAIN_PROGRESS ? 1 : 0;
  };
  int stopped = 0;
  for (const std::string& source : {recipe, file.string()}) {
    const fs::path run = folder.string() + (source == recipe ? "1" : "2");
    EXPECT_OK(vitrail_train(source.c_str(), run.c_str(), &options, &stopped));
    EXPECT_EQ(stopped, 1);
  }
  options.num_settings = 2;
  EXPECT_TRUE(contains(message_of(vitrail_train(recipe.c_str(), (folder / "3").c_str(), &options, &stopped)),
                       "/no/such/model"));
  options.threads = -1;
  EXPECT_TRUE(contains(message_of(vitrail_train(recipe.c_str(), "x", &options, &stopped)), "threads"));
}

}  // namespace
}  // namespace vitrail::testing
