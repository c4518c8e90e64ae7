// SPDX-License-Identifier: Apache-2.0
// Classifies an image with the installed library.   consumer MODEL IMAGE
#include <vitrail/vitrail.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fprintf(stderr, "usage: consumer MODEL IMAGE\n"), 2;
  const vitrail::Model model(argv[1], {.threads = 1});
  for (const auto& [index, label, probability] : model.classify(model.read(argv[2]), 3)) {
    std::printf("%5.1f %%  %4d %s\n", 100 * probability, static_cast<int>(index), label.c_str());
  }
} catch (const vitrail::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", error.what());
  return 1;
}
