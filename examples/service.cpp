// SPDX-License-Identifier: Apache-2.0
// A classification service: reads the path of an image per line and writes its class.   example_service [MODEL]
#include <iostream>

#include "vitrail/vitrail.h"

int main(int argc, char** argv) try {
  // Loaded once.  Any number of threads may call it.
  const vitrail::Model model(argc > 1 ? argv[1] : "imagenet-tiny", {.threads = 2});
  for (std::string path; std::getline(std::cin, path);) {
    try {
      const vitrail::Prediction best = model.classify(model.read(path), 1).front();
      std::cout << path << '\t' << best.label << '\t' << best.probability << std::endl;
    } catch (const vitrail::Error& error) {  // an unreadable image does not end the service
      std::cout << path << "\terror\t" << error.what() << std::endl;
    }
  }
} catch (const std::exception& error) {
  std::cerr << "service: " << error.what() << '\n';
  return 1;
}
