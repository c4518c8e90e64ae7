// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tells how well the embeddings of images and texts go together.
#include <cstdint>
#include <vector>

#include "vitrail/tensor/tensor.h"
#include "vitrail/train/objectives/scores.h"

namespace vitrail::train {

// The scores, in this order: recall at 1 and 5 of the captions of an image and of the image of a caption, and with
// `zero_shot` the zero-shot accuracy.
Metrics contrastive_metrics(bool zero_shot);

// The held-out pairs as embeddings of length 1.
struct PairEmbeddings {
  Tensor images, texts;                  // [N, D], [T, D]
  std::vector<int64_t> samples{};        // [N] indices in the dataset
  std::vector<int64_t> image_of_text{};  // [T] rows of `images`, in ascending order; each has a text
};

// Shares of the images one of whose captions is among the k texts nearest to it, for k = 1 and 5, and of the texts
// whose image is among the k nearest images.  Of equally near rows the first is the nearest.
std::vector<double> retrieval_recall(const PairEmbeddings& pairs);

// The share of the images [N, D] whose nearest class [C, D] is their label.
double zero_shot_accuracy(const Tensor& images, const std::vector<int64_t>& labels, const Tensor& classes);

}  // namespace vitrail::train
