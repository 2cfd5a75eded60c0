"""Stand-in for the base of an InternBootcamp-style collection: cases, prompts, and verification of an output."""


class Basebootcamp:
    @classmethod
    def verify_score(cls, model_output, identity, format_score=0, **_options):
        try:
            found = cls.extract_output(model_output)
            return format_score if found is None else float(cls._verify_correction(found, identity))
        except Exception as error:
            return type(error).__name__
