// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles of the C interface that free themselves, and inputs by both interfaces.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/apps/cli_fixture.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/c_api.h"
#include "vitrail/pipeline/model.h"
#include "vitrail/sam/predictor.h"

namespace vitrail::testing {

namespace fs = std::filesystem;

// A handle that is freed.
template <class T, void (*free)(T*)>
struct Owned {
  T* handle = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  ~Owned() { free(handle); }
  operator T*() const { return handle; }
  T** operator&() { return &handle; }
};
using OwnedModel = Owned<vitrail_model, vitrail_model_free>;
using OwnedImage = Owned<vitrail_image, vitrail_image_free>;
using OwnedTensor = Owned<vitrail_tensor, vitrail_tensor_free>;

// The message of a status, which is freed; empty: none.
inline std::string message_of(vitrail_status* status) {
  const std::string message = status ? vitrail_status_message(status) : "";
  vitrail_status_free(status);
  return message;
}

#define EXPECT_OK(call) EXPECT_EQ(message_of(call), "")

inline void expect_same(const vitrail_tensor* got, const Tensor& want) {
  ASSERT_NE(got, nullptr);
  const Tensor w = want.contiguous();
  ASSERT_EQ(Shape(std::span(vitrail_tensor_shape(got), static_cast<size_t>(vitrail_tensor_rank(got)))), w.shape());
  EXPECT_EQ(std::memcmp(vitrail_tensor_data(got), w.data<float>(), static_cast<size_t>(w.numel()) * sizeof(float)), 0);
}

// Two images for a model, by both interfaces.
struct Inputs {
  const fs::path folder = image_folder(2);
  std::vector<image::Image> pixels;
  std::vector<image::ImageView> views;
  OwnedImage a, b;
  std::array<const vitrail_image*, 2> handles{};

  Inputs(const Model& model, const vitrail_model* handle) {
    for (const char* name : {"a.png", "b.png"}) pixels.push_back(model.read(folder / name));
    views.assign(pixels.begin(), pixels.end());
    EXPECT_OK(vitrail_image_read(handle, (folder / "a.png").c_str(), 0, &a));
    EXPECT_OK(vitrail_image_read(handle, (folder / "b.png").c_str(), 0, &b));
    handles = {a, b};
  }
};

using OwnedEmbedding = Owned<vitrail_image_embedding, vitrail_image_embedding_free>;

// A model of Segment Anything with an image, by both interfaces.
struct Segmenter {
  const SamFixture fixture = sam_fixture("padded_windows");
  const sam::Predictor predictor{fixture.model};
  const sam::ImageEmbedding embedding = predictor.embed(fixture.image);
  OwnedModel model;
  OwnedImage image;
  OwnedEmbedding handle;

  Segmenter() {
    const image::Image& pixels = fixture.image;
    EXPECT_OK(vitrail_model_open(fixture.model.c_str(), nullptr, &model));
    EXPECT_OK(vitrail_image_view(pixels.pixels.data(), pixels.pixels.size(), pixels.width, pixels.height, 0,
                                 VITRAIL_RGB, &image));
    EXPECT_OK(vitrail_segment_embed(model, image, &handle));
  }
};

}  // namespace vitrail::testing
