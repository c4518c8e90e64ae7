// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classification metrics: probabilities, top-k predictions, top-1 and top-5 accuracy.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrail::data {

struct Prediction {
  int64_t index = 0;      // class
  float probability = 0;  // softmax over all classes
};

// softmax(logits), computed in double.  A logit of −infinity has probability 0.  Throws Error naming `where` (the
// image) if a logit is NaN or +infinity, or all are −infinity.
std::vector<float> softmax(std::span<const float> logits, const std::string& where);

// The k classes with the largest logits in descending order, ties by lower index; all classes if k exceeds their
// number.  Throws Error for k < 1 and as softmax.
std::vector<Prediction> top_k(std::span<const float> logits, int64_t k, const std::string& where);

// Top-1 and top-5 accuracy over the images added.
class Accuracy {
 public:
  // logits [classes], label in [0, classes).  Ties count as in top_k: the lower index comes first.  A label with a
  // logit of −infinity is never among the five.  Throws Error for a label out of range and as softmax; the image is
  // then not counted.
  void add(std::span<const float> logits, int64_t label, const std::string& where);

  int64_t images() const { return images_; }
  double top1() const { return fraction(top1_); }  // fraction of images(); 0 without images
  double top5() const { return fraction(top5_); }

 private:
  double fraction(int64_t count) const { return images_ == 0 ? 0 : static_cast<double>(count) / images_; }

  int64_t images_ = 0, top1_ = 0, top5_ = 0;
};

// Wilson's 95 % score interval of a fraction that was measured on `images` images (Wilson, JASA 22, 1927); [0, 1] for
// none.
struct Interval {
  double low = 0, high = 1;
};
Interval wilson_interval(double fraction, int64_t images);

// "95.00 % of 60 images (95 % interval 86.3 to 98.3 %)".
std::string accuracy_text(double fraction, int64_t images);

}  // namespace vitrail::data
