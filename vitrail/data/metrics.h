// SPDX-License-Identifier: Apache-2.0
#pragma once
// From logits to answers: probabilities, the best classes, and how often they are right.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail::data {

struct Prediction {
  int64_t index = 0;      // class
  float probability = 0;  // softmax over all classes
};

// softmax(logits), computed in double.  Throws Error (`where` names the image) where a logit is NaN or +infinity, which
// have no probabilities; −infinity is a class ruled out.
std::vector<float> softmax(std::span<const float> logits, const std::string& where);

// The k classes with the largest logits, best first, equal ones by lower index; all of them when k exceeds their
// number.  Errors as softmax, and k < 1.
std::vector<Prediction> top_k(std::span<const float> logits, int64_t k, const std::string& where);

// Counts how often the right class is the best, and among the five best, of the images added.
class Accuracy {
 public:
  // logits [classes], label in [0, classes).  A class that ties with the label comes before it when its index is
  // lower, as in top_k.  Errors as softmax (nothing is counted then), and a label out of range.
  void add(std::span<const float> logits, int64_t label, const std::string& where);

  int64_t images() const { return images_; }
  double top1() const { return fraction(top1_); }  // fractions of images(), 0 when there are none
  double top5() const { return fraction(top5_); }

 private:
  double fraction(int64_t count) const { return images_ == 0 ? 0 : static_cast<double>(count) / images_; }

  int64_t images_ = 0, top1_ = 0, top5_ = 0;
};

}  // namespace vitrail::data
