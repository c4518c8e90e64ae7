/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies an image with the installed library, in C.   consumer_c MODEL IMAGE */
#include <stdio.h>
#include <vitrail/c_api.h>

#define TOP 3

static int fail(vitrail_status* status) {
  fprintf(stderr, "consumer_c: %s\n", vitrail_status_message(status));
  vitrail_status_free(status);
  return 1;
}

int main(int argc, char** argv) {
  vitrail_model_options options = VITRAIL_MODEL_OPTIONS_INIT;
  vitrail_model* model = NULL;
  vitrail_image* image = NULL;
  vitrail_prediction predictions[TOP];
  int64_t count = 0, i;
  vitrail_status* status;
  if (argc != 3) return fprintf(stderr, "usage: consumer_c MODEL IMAGE\n"), 2;
  options.threads = 1;
  if ((status = vitrail_model_open(argv[1], &options, &model))) return fail(status);
  status = vitrail_image_read(model, argv[2], 0, &image);
  if (!status) {
    const vitrail_image* const images[] = {image};
    status = vitrail_classify(model, images, 1, TOP, predictions, &count);
  }
  for (i = 0; i < count; ++i) {
    printf("%5.1f %%  %4d %s\n", 100 * predictions[i].probability, (int)predictions[i].index, predictions[i].label);
  }
  vitrail_image_free(image);
  vitrail_model_free(model);
  return status ? fail(status) : 0;
}
