/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VITRAIL_C_API_H
#define VITRAIL_C_API_H
/* The C interface: images in, predictions and features out, with the numbers of the command line and of vitrail::Model.
 *
 *   vitrail_model* model = NULL;
 *   vitrail_status* status = vitrail_model_open("models/cifar10-vit", NULL, &model);
 *   if (status) { puts(vitrail_status_message(status)); vitrail_status_free(status); return 1; }
 *
 * Status.  Functions that can fail return NULL, or a status that the caller frees; their outputs are then unchanged.
 * No C++ exception leaves a function, and none ends the process.
 * Handles.  A handle that a function gives through its last argument belongs to the caller, who frees it with the
 * vitrail_..._free function of its type; all of these take NULL.
 * Threads.  Functions of a const model may be called from several threads at once.
 * Options.  A structure begins with its size and is initialised with its VITRAIL_..._INIT, so that a program that was
 * compiled against an older header runs with a newer library.  NULL stands for the defaults.
 * Strings are UTF-8 and end with a zero byte.  A returned const char* belongs to the handle it came from. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Increases with each addition; functions and the order of fields do not change. */
#define VITRAIL_C_API_VERSION 8
int vitrail_api_version(void);     /* that of the library */
const char* vitrail_version(void); /* "0.2.0"; static */

/* -- Status */

typedef struct vitrail_status vitrail_status;

typedef enum vitrail_code {
  VITRAIL_INVALID = 1,       /* a file, option or shape that the library does not accept */
  VITRAIL_OUT_OF_MEMORY = 2, /* memory could not be allocated */
  VITRAIL_INTERNAL = 3,      /* a fault of the library */
  VITRAIL_CANCELLED = 4      /* the limit of the call was reached; since version 5 */
} vitrail_code;

vitrail_code vitrail_status_code(const vitrail_status* status);
/* "WHERE: expected EXPECTED, got GOT", or a sentence; then the three parts are empty. */
const char* vitrail_status_message(const vitrail_status* status);
const char* vitrail_status_where(const vitrail_status* status);
const char* vitrail_status_expected(const vitrail_status* status);
const char* vitrail_status_got(const vitrail_status* status);
void vitrail_status_free(vitrail_status* status);

/* Warnings of the library, such as that of a text that is cut.  Without a callback they are dropped.  Process-wide; the
 * callback may be called from any thread.  NULL removes it. */
void vitrail_set_warning_callback(void (*callback)(const char* message, void* context), void* context);

/* -- Ending calls early, since version 5 */

typedef struct vitrail_call_limit {
  size_t struct_size;
  int64_t timeout_ms;              /* milliseconds from now on; 0: no deadline */
  int (*cancelled)(void* context); /* another value than 0 ends the call; NULL: no such function */
  void* context;
} vitrail_call_limit;
#define VITRAIL_CALL_LIMIT_INIT \
  { sizeof(vitrail_call_limit), 0, NULL, NULL }

/* Holds for the calls of this thread until it gives another limit; NULL: none.  A call that runs a model ends with
 * VITRAIL_CANCELLED once the limit is reached.  That is looked at before each layer and before each image is
 * preprocessed, and `cancelled` is called from several threads at once.  Opening a model, reading images, gradients and
 * training, which has a function of its own, are not ended. */
vitrail_status* vitrail_set_call_limit(const vitrail_call_limit* limit);

/* -- Tensors: contiguous results */

typedef struct vitrail_tensor vitrail_tensor;

const float* vitrail_tensor_data(const vitrail_tensor* tensor);
int vitrail_tensor_rank(const vitrail_tensor* tensor);
const int64_t* vitrail_tensor_shape(const vitrail_tensor* tensor); /* one extent per dimension */
void vitrail_tensor_free(vitrail_tensor* tensor);

/* -- Models */

typedef struct vitrail_model vitrail_model;

typedef struct vitrail_model_options {
  size_t struct_size;
  int threads;           /* 0: as many as the process may use */
  const char* precision; /* "fp32", "half" or "int8"; NULL: int8 for an int8 model, else fp32 */
  const char* labels;    /* a file with one class name per line; NULL: the model's own names */
  const char* config;    /* a config.json, or the name of an architecture, for weights without one; NULL: none */
  const char* tokenizer; /* the tokenizer of a model with a text tower; NULL: in the model's folder */
  int64_t image_height;  /* another image size than the model's; positions are interpolated; 0: the model's */
  int64_t image_width;
} vitrail_model_options;
#define VITRAIL_MODEL_OPTIONS_INIT \
  { sizeof(vitrail_model_options), 0, NULL, NULL, NULL, NULL, 0, 0 }

/* path: a model's folder, a weights file, the folder of a training run, the name of a bundled model, or
 * "organisation/name[@revision]" of the Hugging Face hub, which is downloaded to the cache if it is not there.  A
 * checkpoint of Segment Anything is for vitrail_segment; of the options, it takes threads and precision. */
vitrail_status* vitrail_model_open(const char* path, const vitrail_model_options* options, vitrail_model** model);
void vitrail_model_free(vitrail_model* model);

/* A model whose files are in memory, since version 5. */
typedef struct vitrail_model_bytes {
  size_t struct_size;
  const void* weights; /* a safetensors file: no copy is made, so that it must outlive the model */
  size_t weights_size;
  const char* config;       /* the text of config.json; NULL: the options' config names an architecture */
  const char* preprocessor; /* the text of preprocessor_config.json, of a model of transformers; NULL: none */
} vitrail_model_bytes;
#define VITRAIL_MODEL_BYTES_INIT \
  { sizeof(vitrail_model_bytes), NULL, 0, NULL, NULL }

/* A model with a text tower takes images alone, unless the options name its tokenizer. */
vitrail_status* vitrail_model_open_bytes(const vitrail_model_bytes* bytes, const vitrail_model_options* options,
                                         vitrail_model** model);

const char* vitrail_model_config(const vitrail_model* model);                    /* config.json */
int64_t vitrail_model_num_classes(const vitrail_model* model);                   /* 0: without a head */
const char* vitrail_model_class_name(const vitrail_model* model, int64_t index); /* NULL: no such class */
int vitrail_model_has_text(const vitrail_model* model);                          /* whether texts can be embedded */

/* -- Images: 8 bits per channel */

typedef struct vitrail_image vitrail_image;

typedef enum vitrail_pixel_format {
  VITRAIL_GREY = 0,
  VITRAIL_RGB = 1,
  VITRAIL_BGR = 2,
  VITRAIL_RGBA = 3,
  VITRAIL_BGRA = 4
} vitrail_pixel_format;

/* JPEG, PNG, WebP, GIF, BMP, TIFF and Netpbm, decoded in the model's colour mode (NULL: RGB).  apply_exif: rotate as
 * the EXIF orientation says. */
vitrail_status* vitrail_image_read(const vitrail_model* model, const char* path, int apply_exif, vitrail_image** image);
vitrail_status* vitrail_image_decode(const vitrail_model* model, const void* bytes, size_t size, int apply_exif,
                                     vitrail_image** image);
/* Pixels of the caller, which must outlive the image: no copy is made.  size: bytes from the first to the last pixel;
 * stride: bytes from row to row, 0 for rows without padding. */
vitrail_status* vitrail_image_view(const uint8_t* pixels, size_t size, int64_t width, int64_t height, int64_t stride,
                                   vitrail_pixel_format format, vitrail_image** image);

/* Frames of cameras and video decoders, since version 5. */
typedef enum vitrail_yuv_format {
  VITRAIL_NV12 = 0, /* a plane of Y, and a plane of U and V for 2x2 pixels */
  VITRAIL_YUYV = 1  /* Y U Y V: U and V are for two pixels of a row; also called YUY2 */
} vitrail_yuv_format;

typedef struct vitrail_yuv_frame {
  size_t struct_size;
  vitrail_yuv_format format;
  int64_t width, height; /* may be odd: the last column or row then has U and V of its own */
  const uint8_t* pixels; /* the plane of Y, or all of YUYV */
  size_t size;           /* bytes of `pixels` */
  int64_t stride;        /* bytes from row to row; 0: rows without padding */
  const uint8_t* chroma; /* NV12's plane of U and V; NULL: behind the `height` rows of Y, in `pixels` */
  size_t chroma_size;
  int64_t chroma_stride; /* 0: as `stride`, made even */
  int bt709;             /* 0: BT.601, the standard of cameras; otherwise BT.709, that of HD video */
  int full_range;        /* 0: Y from 16 to 235; otherwise all values from 0 to 255 */
} vitrail_yuv_frame;
#define VITRAIL_YUV_FRAME_INIT \
  { sizeof(vitrail_yuv_frame), VITRAIL_NV12, 0, 0, NULL, 0, 0, NULL, 0, 0, 0, 0 }

/* A copy in RGB, after which the frame's memory may be reused.  The conversion is that of OpenCV's cvtColor. */
vitrail_status* vitrail_image_from_yuv(const vitrail_yuv_frame* frame, vitrail_image** image);
int64_t vitrail_image_width(const vitrail_image* image);
int64_t vitrail_image_height(const vitrail_image* image);
void vitrail_image_free(vitrail_image* image);

/* -- Inference.  images: `count` handles, at least one. */

typedef struct vitrail_prediction {
  int64_t index;     /* class */
  float probability; /* softmax, the sigmoid of a multi-label model, or the value of a regression */
  const char* label; /* belongs to the model */
} vitrail_prediction;

/* The `top` most probable classes of each image, in descending order: predictions [count * *written].  *written is the
 * smaller one of `top` and the number of classes.  `predictions` has room for count * top. */
vitrail_status* vitrail_classify(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                 int64_t top, vitrail_prediction* predictions, int64_t* written);
vitrail_status* vitrail_logits(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                               vitrail_tensor** logits); /* [count, classes] */

typedef enum vitrail_tokens {
  VITRAIL_TOKENS_POOLED = 0, /* [count, D]; of a model with a projection (CLIP): projected */
  VITRAIL_TOKENS_CLS = 1,    /* [count, D] */
  VITRAIL_TOKENS_PATCH = 2,  /* [count, N, D] */
  VITRAIL_TOKENS_GRID = 3,   /* [count, rows, columns, D] */
  VITRAIL_TOKENS_ALL = 4     /* [count, prefix + N, D] */
} vitrail_tokens;

typedef struct vitrail_embed_options {
  size_t struct_size;
  vitrail_tokens tokens;
  int64_t layer;    /* index of a block; negative counts from the end */
  int skip_norm;    /* without the model's final norm */
  int l2_normalize; /* scale each vector to length 1 */
} vitrail_embed_options;
#define VITRAIL_EMBED_OPTIONS_INIT \
  { sizeof(vitrail_embed_options), VITRAIL_TOKENS_POOLED, -1, 0, 0 }

vitrail_status* vitrail_embed(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                              const vitrail_embed_options* options, vitrail_tensor** features);

typedef struct vitrail_attention_options {
  size_t struct_size;
  int64_t layer; /* index of a block; negative counts from the end */
  int64_t head;  /* -1: the mean over all heads */
  int rollout;   /* attention rollout over all blocks instead */
} vitrail_attention_options;
#define VITRAIL_ATTENTION_OPTIONS_INIT \
  { sizeof(vitrail_attention_options), -1, -1, 0 }

/* The attention of the class token, or without one of the mean over all tokens, to each patch: [rows, columns]. */
vitrail_status* vitrail_attention(const vitrail_model* model, const vitrail_image* image,
                                  const vitrail_attention_options* options, vitrail_tensor** map);

/* The gradient of a class's logit, since version 5, computed in fp32: gradients[i] has that of values[i] and its shape
 * without the batch, with room for num_values handles.  target: the index of the class; -1: the one with the highest
 * logit.  values: "images", the model's input [channels, height, width], as vitrail_preprocess gives it, or names that
 * `vitrail inspect --trace` lists: "embedded", the tokens [tokens, D] that enter the first block; "blocks.3", those
 * after a block.  The first call for a model reads its weights again, and keeps them.  A model without a classifier and
 * one with int8 weights are errors. */
vitrail_status* vitrail_gradients(const vitrail_model* model, const vitrail_image* image, int64_t target,
                                  const char* const* values, size_t num_values, vitrail_tensor** gradients);

/* The first three principal components of the patch features of all images, scaled to 0 to 1: maps[i] [rows, columns,
 * 3] of image i, with room for `count` handles. */
vitrail_status* vitrail_pca(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                            vitrail_tensor** maps);
/* The same, since version 4, of features whose images need not be in memory together: features[i] [1, rows, columns,
 * D], as vitrail_embed gives them for image i with VITRAIL_TOKENS_GRID. */
vitrail_status* vitrail_pca_maps(const vitrail_tensor* const* features, size_t count, vitrail_tensor** maps);

/* The model's input of images whose inputs have one size: [count, channels, height, width]. */
vitrail_status* vitrail_preprocess(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                   vitrail_tensor** input);
/* The model's output for an input of four extents, contiguous: class scores [B, classes], or without a head the pooled
 * features [B, D]. */
vitrail_status* vitrail_forward(const vitrail_model* model, const float* input, const int64_t shape[4],
                                vitrail_tensor** output);

/* -- Texts, with models that have a text tower (CLIP, SigLIP) */

/* Embeddings of length 1: [count, D].  With vitrail_embed's of the images, a product is a cosine similarity. */
vitrail_status* vitrail_embed_texts(const vitrail_model* model, const char* const* texts, size_t count,
                                    vitrail_tensor** embeddings);
/* The probability of each label for each image [count, num_labels]: softmax over the labels, or the sigmoid of each
 * (SigLIP).  templates: "a photo of a {}"; none: the labels are the texts. */
vitrail_status* vitrail_zeroshot(const vitrail_model* model, const vitrail_image* const* images, size_t count,
                                 const char* const* labels, size_t num_labels, const char* const* templates,
                                 size_t num_templates, vitrail_tensor** probabilities);

/* -- Training, since version 2 */

typedef enum vitrail_train_event {
  VITRAIL_TRAIN_MESSAGE = 0,  /* a line for a log */
  VITRAIL_TRAIN_PROGRESS = 1, /* a JSON object after each batch: vitrail/train/report/result_json.h */
  VITRAIL_TRAIN_EPOCH = 2,    /* a JSON object after each epoch */
  VITRAIL_TRAIN_RESULT = 3    /* a JSON object at the end, unless the run was stopped */
} vitrail_train_event;

typedef struct vitrail_train_options {
  size_t struct_size;
  int threads;                 /* 0: as many as the process may use */
  int resume;                  /* continue from the folder's checkpoint, if there is one */
  int allow_changes;           /* resume even if the recipe has changed */
  const char* model;           /* the model to start from; NULL: the recipe's, or the bundled one */
  const char* const* settings; /* "key.path=value", which replace fields of the recipe */
  size_t num_settings;
  /* Called from the calling thread.  Another value than 0 stops the run after the current step, with a checkpoint. */
  int (*on_event)(vitrail_train_event event, const char* text, void* context);
  void* context;
  const char* preset; /* for a dataset, since version 7: "finetune" (NULL), "probe", "scratch" (a new small model) */
  int force;          /* since version 7: take settings that are known to destroy a pretrained model */
} vitrail_train_options;
#define VITRAIL_TRAIN_OPTIONS_INIT \
  { sizeof(vitrail_train_options), 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, 0 }

/* Trains a model and writes the run to the folder, as `vitrail train` does.  source: a recipe as JSON text, a recipe's
 * .json file, or a dataset, for which the settings are chosen.  *stopped: 1 if on_event ended the run early. */
vitrail_status* vitrail_train(const char* source, const char* folder, const vitrail_train_options* options,
                              int* stopped);

/* -- Masks, with Segment Anything */

typedef struct vitrail_image_embedding vitrail_image_embedding;

/* What the image encoder gives for an image: once per image, each prompt is then quick. */
vitrail_status* vitrail_segment_embed(const vitrail_model* model, const vitrail_image* image,
                                      vitrail_image_embedding** embedding);
void vitrail_image_embedding_free(vitrail_image_embedding* embedding);

/* In pixels of the image.  Points, box and mask are one prompt, with at least one of them. */
typedef struct vitrail_prompt {
  size_t struct_size;
  const double* points; /* x and y of each point */
  const int* labels;    /* 1 in the object, 0 outside, for each point; NULL: all in the object */
  size_t num_points;
  const double* box;        /* x0, y0, x1, y1; NULL: none */
  const float* mask_logits; /* [mask_size, mask_size], as vitrail_segment gives them; NULL: none */
  int64_t mask_size;
  int single; /* one mask instead of three of different extent */
  /* Since version 4, instead of mask_logits: a mask [mask_height, mask_width] of the image's size, with 0 outside the
   * object and one other value in it. */
  const uint8_t* mask;
  int64_t mask_width, mask_height;
} vitrail_prompt;
#define VITRAIL_PROMPT_INIT \
  { sizeof(vitrail_prompt), NULL, NULL, 0, NULL, NULL, 0, 0, NULL, 0, 0 }

/* The masks of a prompt: masks [masks, height, width] of the image, 1 in the object and 0 outside; iou [masks], the
 * predicted intersection over union; logits [masks, h, w] at the model's mask size.  NULL: the result is not needed. */
vitrail_status* vitrail_segment(const vitrail_model* model, const vitrail_image_embedding* embedding,
                                const vitrail_prompt* prompt, vitrail_tensor** masks, vitrail_tensor** iou,
                                vitrail_tensor** logits);

/* -- Tasks by their names, since version 3 */

typedef struct vitrail_text vitrail_text;

/* Runs a task of `vitrail serve` ("classify"), or one that the program has added, on the images.  options:
 * "name=value", as the server takes them; a further model, such as the detector of "pose", by its path, which stays
 * open with this one.  *json: a list with the server's object for each image. */
vitrail_status* vitrail_run(const vitrail_model* model, const char* task, const vitrail_image* const* images,
                            size_t count, const char* const* options, size_t num_options, vitrail_text** json);
const char* vitrail_text_data(const vitrail_text* text);
void vitrail_text_free(vitrail_text* text);

/* An array of the result of vitrail_run for the image at `index`, as the command's --arrays writes it, such as "depth";
 * since version 6.  `results` keeps what it needs; the model must be open. */
vitrail_status* vitrail_run_array(const vitrail_text* results, size_t index, const char* name, vitrail_tensor** array);

/* The file of the result of vitrail_run for the image at `index`, as the server sends it for the option "format" that
 * vitrail_run had, such as "format=html" of "explain" or "format=png"; since version 8.  *bytes belongs to `results`
 * and is valid until the next call of this function with it.  The model must be open. */
vitrail_status* vitrail_run_file(vitrail_text* results, size_t index, const uint8_t** bytes, size_t* size);

/* -- Paths, since version 4 */

typedef struct vitrail_paths vitrail_paths;

/* The image files of a folder and its subfolders, by their extensions, as paths that begin with `folder`, sorted
 * bytewise.  Other files are left out with a warning.  A folder without images is an error; a subfolder that cannot be
 * read is in the list, and cannot be read as an image. */
vitrail_status* vitrail_list_images(const char* folder, vitrail_paths** images);
const char* vitrail_paths_at(const vitrail_paths* paths, size_t index); /* NULL: after the last */
void vitrail_paths_free(vitrail_paths* paths);

#ifdef __cplusplus
}
#endif
#endif
