// SPDX-License-Identifier: Apache-2.0
// The similarity of an image and a text by CLIP or SigLIP.   example_similarity MODEL IMAGE TEXT
#include <iostream>

#include "vitrail/vitrail.h"

int main(int argc, char** argv) try {
  if (argc != 4) throw vitrail::Error("usage: example_similarity MODEL IMAGE TEXT");
  const vitrail::DualModel model(argv[1]);
  const vitrail::Tensor image = model.embed_image(model.images().read(argv[2]));
  const vitrail::Tensor text = model.embed_texts({argv[3]});
  std::cout << model.similarity(image, text).item<float>() << '\n';  // from -1 to 1
} catch (const std::exception& error) {
  std::cerr << "similarity: " << error.what() << '\n';
  return 1;
}
