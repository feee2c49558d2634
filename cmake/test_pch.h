// Precompiled for every test suite without torch; sources still include what they use.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cmake/pch.h"
