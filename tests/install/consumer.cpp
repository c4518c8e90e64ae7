// SPDX-License-Identifier: Apache-2.0
// Classifies an image with the installed library.   consumer MODEL IMAGE
#include <vitrail/vitrail.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: consumer MODEL IMAGE\n"), 2;
  using namespace vitrail;
  const models::OpenedModel opened = models::open_model(argv[1]);
  const image::EvalTransform transform = infer::transform_of(opened.config.preprocessing, argv[1]);
  const infer::Session session(models::build_model(opened));

  const Tensor pixels = image::apply(image::read_image(argv[2]), transform);  // [3, H, W]
  const Tensor logits = session.logits(pixels.unsqueeze(0));                  // [1, classes]

  const std::span<const float> row(logits.data<float>(), logits.numel());
  const bool imagenet = row.size() == data::imagenet_class_names().size();
  for (const data::Prediction& best : data::top_k(row, 3, argv[2])) {
    const std::string name = imagenet ? std::string(data::imagenet_class_names()[best.index]) : "class";
    std::printf("%5.1f %%  %4d %s\n", 100 * best.probability, static_cast<int>(best.index), name.c_str());
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 1;
}
