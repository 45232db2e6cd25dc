/* moves.h: which lines were moved, and by which instructions. */
#ifndef MOVES_H
#define MOVES_H

#include <stdint.h>
#include <stdio.h>

/* An instruction moved a line in this phase. */
void moves_add(unsigned phase, uint64_t line, uint64_t instruction);

/* Writes the lines that moved most, each with the instructions that moved it, and all instructions that moved any. */
void moves_write(FILE *to);

#endif
