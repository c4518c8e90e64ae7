// SPDX-License-Identifier: Apache-2.0
// The mask of the object at a point of an image, by Segment Anything, as a PNG.   example_click MODEL IMAGE X Y OUT.png
#include <algorithm>
#include <iostream>

#include "vitrail/image/encode.h"
#include "vitrail/vitrail.h"

int main(int argc, char** argv) try {
  using namespace vitrail;
  if (argc != 6) throw Error("usage: example_click MODEL IMAGE X Y OUT.png");
  const sam::Predictor predictor(argv[1]);
  const image::Image photo = image::read_image(argv[2]);
  const sam::ImageEmbedding embedding = predictor.embed(photo);  // once per image; each click is then quick
  const sam::Masks masks = predictor.predict(embedding, {.points = {{std::stod(argv[3]), std::stod(argv[4]), 1}}});
  const auto best = std::max_element(masks.iou.begin(), masks.iou.end()) - masks.iou.begin();
  const Tensor logits = predictor.image_logits(masks.logits.select(0, best), photo.width, photo.height);
  image::Image mask = image::make_image(photo.width, photo.height, 1);
  for (int64_t i = 0; i < logits.numel(); ++i) mask.pixels[i] = logits.data<float>()[i] > 0 ? 255 : 0;
  image::write_png(argv[5], mask);
  std::cout << "predicted IoU " << masks.iou[best] << '\n';
} catch (const std::exception& error) {
  std::cerr << "click: " << error.what() << '\n';
  return 1;
}
