#pragma once

#include <torch/version.h>

#include "chiliad_headers_digest.h"  // made by the build: CHILIAD_HEADERS_DIGEST, CHILIAD_VERSION_TEXT

#define CHILIAD_TEXT_(x) #x
#define CHILIAD_TEXT(x) CHILIAD_TEXT_(x)

#ifdef CHILIAD_FAULTS
#define CHILIAD_FAULTS_TEXT ", with fault hooks"
#else
#define CHILIAD_FAULTS_TEXT ""
#endif

/// What must be alike in a library of extensions and in the program that loads it.
#define CHILIAD_BUILD_ID                                                                  \
  "Chiliad " CHILIAD_VERSION_TEXT " (headers " CHILIAD_HEADERS_DIGEST CHILIAD_FAULTS_TEXT \
  "), torch " TORCH_VERSION ", compiler " __VERSION__

/// Comes before it in a library's file, so that it can be read without loading the library.
#define CHILIAD_BUILD_ID_MARK "chiliad-build-id:"
