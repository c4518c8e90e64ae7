# SPDX-License-Identifier: Apache-2.0
# The SentencePiece module, which is loaded for SigLIP's tokenizer, so that the library and the program do not link
# SentencePiece.  Without its development files (Debian: libsentencepiece-dev) it is not built, and SigLIP's texts are
# an error.
if(VITRAIL_SENTENCEPIECE)
  find_library(VITRAIL_sentencepiece_LIBRARY sentencepiece)
  find_path(VITRAIL_sentencepiece_INCLUDE sentencepiece_processor.h)
  mark_as_advanced(VITRAIL_sentencepiece_LIBRARY VITRAIL_sentencepiece_INCLUDE)
  if(VITRAIL_sentencepiece_LIBRARY AND VITRAIL_sentencepiece_INCLUDE)
    vitrail_add_module(vitrail_sentencepiece runtime text/sentencepiece_module.cpp)
    target_include_directories(vitrail_sentencepiece SYSTEM PRIVATE ${VITRAIL_sentencepiece_INCLUDE})
    target_link_libraries(vitrail_sentencepiece PRIVATE ${VITRAIL_sentencepiece_LIBRARY})
  else()
    message(STATUS "SentencePiece was not found: without the module vitrail_sentencepiece, SigLIP takes no texts")
  endif()
endif()
