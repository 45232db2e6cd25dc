/* An extension of Perl by hand: every inline function of the interpreter's headers comes along. */
#define PERL_NO_GET_CONTEXT
#include <EXTERN.h>
#include <perl.h>
#include <XSUB.h>

static SV *sum_of(pTHX_ AV *list) {
    NV sum = 0;
    for (SSize_t i = 0; i <= av_len(list); i++) {
        SV **item = av_fetch(list, i, 0);
        if (item && SvOK(*item))
            sum += SvROK(*item) && SvTYPE(SvRV(*item)) == SVt_PVAV
                       ? SvNV(sum_of(aTHX_ (AV *)SvRV(*item)))
                       : SvNV(*item);
    }
    return newSVnv(sum);
}

XS(masu_words);
XS(masu_words) {
    dXSARGS;
    if (items != 1)
        croak_xs_usage(cv, "text");
    STRLEN length;
    const char *text = SvPV(ST(0), length);
    HV *words = newHV();
    const char *end = text + length;
    while (text < end) {
        const char *start = text;
        while (text < end && isWORDCHAR_utf8_safe((const U8 *)text, (const U8 *)end))
            text += UTF8SKIP(text);
        if (text == start) {
            text++;
            continue;
        }
        SV **count = hv_fetch(words, start, (I32)(text - start), 1);
        sv_setiv(*count, SvOK(*count) ? SvIV(*count) + 1 : 1);
    }
    AV *list = newAV();
    av_push(list, newSVpvf("%" IVdf, (IV)HvUSEDKEYS(words)));
    av_push(list, sum_of(aTHX_ list));
    ST(0) = sv_2mortal(newRV_noinc((SV *)list));
    SvREFCNT_dec(words);
    XSRETURN(1);
}
